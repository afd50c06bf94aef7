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
  /// The disk failed, files of data_dir were moved, or the running agent repaired its store and must restart
  /// (EX_IOERR). No subcommand returns it: the store ends the process with it (store/group.cpp, which may not include
  /// this file).
  kDisk = 74,
  kConfig = 78,  ///< the configuration is wrong (EX_CONFIG)
};

}  // namespace driftd::cli
