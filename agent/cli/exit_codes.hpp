// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd::cli {

/// Exit codes of `driftd`. They are the same for every subcommand (docs/cli.md).
enum ExitCode : int {
  kOk = 0,            ///< success, nothing found
  kFinding = 1,       ///< drift, a probe that fails, or a request that the agent refused
  kUsage = 2,         ///< the command line is wrong
  kIncomplete = 3,    ///< not everything could be judged; the rest shows no drift
  kUnreachable = 69,  ///< no agent answers (EX_UNAVAILABLE)
  kConfig = 78,       ///< the configuration is wrong (EX_CONFIG)
};

}  // namespace driftd::cli
