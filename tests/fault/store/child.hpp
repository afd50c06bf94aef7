// SPDX-License-Identifier: Apache-2.0
// An agent's store in a process of its own, which may end.
#pragma once

#include <sys/wait.h>
#include <unistd.h>
#include <functional>
#include <string>

#include "unit/store/bench.hpp"

namespace driftd::test {

inline constexpr int kFailStop = 74;

/// Runs `body` in a child on the store of `data_dir`, which has one backend; its exit code, 0 where `body` came to its
/// end.
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
