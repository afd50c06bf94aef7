// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

namespace driftd::check {

/// Finds processes that a child started and left behind. From the construction on, this process adopts the children of
/// a dead child (PR_SET_CHILD_SUBREAPER). The caller must have one thread only, and between the construction and end()
/// it must start no process but the watched one.
class Orphans {
 public:
  Orphans();
  /// Kills what the child left behind; call it after the child was reaped. Returns the first process that did not die
  /// with the child's process group: `process 4711 (sleep)`. Empty if there was none.
  std::string end() const;

 private:
  std::set<pid_t> before_;
};

}  // namespace driftd::check
