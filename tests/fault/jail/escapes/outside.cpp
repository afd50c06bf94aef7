// SPDX-License-Identifier: Apache-2.0
// outside TARGETS_JSON: makes the same attempts without a jail, each in a process of its own. For each it prints
// `errno<TAB>root<TAB>feature<TAB>name`. An errno of 0 means that it succeeded, -1 that the process was killed.
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>

#include "escapes.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto targets = driftd::escapes::parse_targets(argv[1]);
  for (const auto& attempt : driftd::escapes::attempts()) {
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0)
      ::_exit(attempt.run(targets));  // if the attempt replaces this program by another one, that exits with 0
    int status = 0;
    ::waitpid(child, &status, 0);
    std::printf("%d\t%d\t%d\t%s\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, attempt.root, attempt.feature,
                attempt.name);
  }
  return 0;
}
