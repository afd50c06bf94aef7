// SPDX-License-Identifier: Apache-2.0
// Past drifts for `driftd policy test`: of the agent, or of a file that `driftd drifts --all -o json` printed.
#pragma once

#include <string>
#include <vector>

#include "cli/client.hpp"
#include "core/drift.hpp"

namespace driftd::cli {

struct PastDrift {
  std::string backend;  ///< its name
  core::Drift drift;    ///< without values; of `changes` only paths and classes count
};
struct History {
  std::vector<PastDrift> drifts;
  std::vector<std::string> notes;  ///< what of it is missing, one sentence each
};

/// Asks the agent for the drifts of these backends, open ones and those that ended, as far as it keeps them
/// (`retention.history`).
Outcome<History> history_of_agent(const Client& client, const std::vector<std::string>& backends);
/// Reads a file. `-` is not read from stdin: a pipeline writes a file that can be tried again.
Outcome<History> history_of_file(const std::string& file);

}  // namespace driftd::cli
