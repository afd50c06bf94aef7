// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "support/agent.hpp"

namespace driftd::test {

/// Chooses a commit of an agent at which it is killed or stopped; see at_sync.c.
class AtSync {
 public:
  explicit AtSync(const TempDir& dir) : file_(dir.file("at_sync")) {}

  /// Adds what the agent needs to its environment.
  std::map<std::string, std::string> environment(std::map<std::string, std::string> more) const {
    more["DRIFTD_AT_SYNC"] = file_;
    more["LD_PRELOAD"] = Agent::build("preloaded/driftd_at_sync.so");
    return more;
  }
  /// `word`: `kill_before`, `kill_after` or `stop_after`; `number`: counted from now on.
  void choose(const std::string& word, int number) const {
    std::ofstream(file_ + ".next") << word << " " << number << "\n";
    std::filesystem::rename(file_ + ".next", file_);
  }
  /// Returns true if the chosen commit did not come yet. Now none is chosen.
  bool forget() const { return std::filesystem::remove(file_); }

 private:
  std::string file_;
};

}  // namespace driftd::test
