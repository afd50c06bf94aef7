// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd::cli {

/// What `driftd` exits with; the same for every subcommand (docs/cli.md).
enum ExitCode : int {
  kOk = 0,            ///< done; nothing found
  kFinding = 1,       ///< drift, a probe that says no, or a request that the agent refused
  kUsage = 2,         ///< the command line is wrong
  kIncomplete = 3,    ///< not everything could be judged: no drift was found in what could
  kUnreachable = 69,  ///< no agent answers (EX_UNAVAILABLE)
  kConfig = 78,       ///< the configuration is wrong (EX_CONFIG)
};

}  // namespace driftd::cli
