// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

namespace driftd::check {

/// Processes that somebody started and left behind: as long as this lives, those of a dead child become children of
/// this process. The caller has one thread and starts, between making it and end(), no process but the one that is
/// watched.
class Orphans {
 public:
  Orphans();
  /// The child was reaped: ends what it left. `process 4711 (sleep)` of the first that did not die with the child's
  /// process group; empty: there was none.
  std::string end() const;

 private:
  std::set<pid_t> before_;
};

}  // namespace driftd::check
