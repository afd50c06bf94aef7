// SPDX-License-Identifier: Apache-2.0
// Runs a store in a child process, because a store ends its process when the disk fails or changes under it.
#pragma once

#include <sys/wait.h>
#include <unistd.h>
#include <functional>
#include <string>

#include "unit/store/bench.hpp"

namespace driftd::test {

/// The exit code of a process that its store has ended (EX_IOERR).
inline constexpr int kFailStop = 74;

/// Runs `body` in a child on the store of `data_dir`, which has one backend. Returns the child's exit code, which is 0
/// if `body` returned.
inline int store_in_child(const std::string& data_dir, const std::function<void(Bench&)>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    Bench bench(data_dir);
    if (!bench.open()) ::_exit(1);
    bench.get(bench->commit(registration()));
    body(bench);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace driftd::test
