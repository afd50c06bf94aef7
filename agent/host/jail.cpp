// SPDX-License-Identifier: Apache-2.0
#include "host/jail.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace driftd::host {
namespace {

constexpr rlim_t kMaxFiles = 1024;

Status held(bool done, const char* what) {
  if (done) return {};
  return fail(Code::denied, fmt::format("worker: {}: {}", what, std::strerror(errno)));
}

bool limit(__rlimit_resource what, rlim_t most) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0) return false;
  const rlim_t hard = std::min(now.rlim_max, most);
  const rlimit wanted{hard, hard};
  return ::setrlimit(what, &wanted) == 0;
}

bool close_others(int keep) {
  const auto from = static_cast<unsigned>(keep);
  const bool below = keep == 3 || ::close_range(3, from - 1, 0) == 0;
  return below && ::close_range(from + 1, ~0u, 0) == 0;
}

}  // namespace

Status enter_jail(int keep, pid_t parent) {
  DRIFTD_CHECK(held(keep > 2 && ::fcntl(keep, F_SETFD, FD_CLOEXEC) == 0, "protocol descriptor"));
  DRIFTD_CHECK(held(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "PR_SET_PDEATHSIG"));
  if (::getppid() != parent) return fail(Code::cancelled, "worker: the agent is gone already");
  DRIFTD_CHECK(held(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"));
  DRIFTD_CHECK(held(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "PR_SET_DUMPABLE"));
  DRIFTD_CHECK(held(limit(RLIMIT_CORE, 0), "RLIMIT_CORE"));
  DRIFTD_CHECK(held(limit(RLIMIT_NOFILE, kMaxFiles), "RLIMIT_NOFILE"));
  DRIFTD_CHECK(held(close_others(keep), "close_range"));
  DRIFTD_CHECK(held(::clearenv() == 0, "clearenv"));
  DRIFTD_CHECK(held(::chdir("/") == 0, "chdir /"));
  ::umask(077);
  return {};
}

}  // namespace driftd::host
