// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace driftd::app {

/// Runs the agent until SIGTERM or SIGINT; returns an exit code (cli/exit_codes.hpp). Errors go to stderr.
int run(const std::string& config_file);

/// `driftd once`: one full refresh of every backend.
struct OnceOptions {
  std::string baseline_file;  ///< compare with this record, touch no store
  std::string record_file;    ///< write what was seen, touch no store
  bool json = false;          ///< `-o json`
};
/// Prints the drifts to stdout. 0 equal, 1 drift, 3 incomplete, 78 config. Without a file: against the store, under its
/// lock; `locked` of the result is decided by the caller: when an agent holds the lock, the CLI asks that agent.
int once(const std::string& config_file, const OnceOptions& options);

}  // namespace driftd::app
