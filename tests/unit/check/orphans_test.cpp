// SPDX-License-Identifier: Apache-2.0
#include "check/orphans.hpp"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace driftd::check {
namespace {

/// A process may end between finding its folder in /proc and reading its file.
TEST(Strays, ProcessesOfOthersThatComeAndGoAreNoTrouble) {
  char shell[] = "/bin/sh", flag[] = "-c", work[] = "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done";
  char* argv[] = {shell, flag, work, nullptr};
  pid_t busy = 0;
  ASSERT_EQ(::posix_spawn(&busy, shell, nullptr, nullptr, argv, environ), 0);
  const Orphans orphans;
  while (::waitpid(busy, nullptr, WNOHANG) == 0) EXPECT_EQ(orphans.end(), "") << "what was there before is no stray";
}

}  // namespace
}  // namespace driftd::check
