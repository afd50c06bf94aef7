// SPDX-License-Identifier: Apache-2.0
#include "worker/jail.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace driftd::worker {
namespace {

constexpr rlim_t kMaxFiles = 1024;
#if defined(__SANITIZE_THREAD__)
constexpr int kThreads = 2;  // the sanitizer has one more: landlock does not hold it, seccomp does
#else
constexpr int kThreads = 1;
#endif

Status check_step(bool done, const char* what) {
  if (done) return {};
  return fail(Code::denied, fmt::format("worker: {}: {}", what, std::strerror(errno)));
}

bool limit(__rlimit_resource what, rlim_t maximum) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0) return false;
  const rlim_t hard = std::min(now.rlim_max, maximum);
  const rlimit wanted{hard, hard};
  return ::setrlimit(what, &wanted) == 0;
}

bool close_others(int keep) {
  const auto from = static_cast<unsigned>(keep);
  const bool below = keep == 3 || ::close_range(3, from - 1, 0) == 0;
  return below && ::close_range(from + 2, ~0u, 0) == 0;
}

/// Gives up all capabilities, also as root: what remains are the rights that file modes give to the user. Only a
/// process with CAP_SETPCAP may empty the bounding set; without it, no_new_privs prevents that exec brings any back.
bool drop_capabilities() {
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);  // fails only on kernels without it (before 4.3)
  for (int each = 0; ::prctl(PR_CAPBSET_READ, each, 0, 0, 0) >= 0; ++each) {
    if (::prctl(PR_CAPBSET_DROP, each, 0, 0, 0) != 0 && errno != EPERM) return false;
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  return ::syscall(SYS_capset, &header, none) == 0;
}

/// Makes the kernel kill a worker, not the agent, when memory runs out. Only a process with CAP_SYS_RESOURCE could undo
/// that. Without /proc the agent's own value stays.
void offer_to_oom_killer() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!::write(fd, "1000", 4);
  ::close(fd);
}

int thread_count() {
  std::error_code failed;
  const std::filesystem::directory_iterator tasks("/proc/self/task", failed);
  return failed ? -1 : static_cast<int>(std::distance(tasks, std::filesystem::directory_iterator{}));
}

}  // namespace

Status strip_process(int keep, pid_t parent) {
  DRIFTD_CHECK(check_step(keep > 2 && ::fcntl(keep, F_SETFD, FD_CLOEXEC) == 0, "protocol descriptor"));
  DRIFTD_CHECK(check_step(::fcntl(keep + 1, F_SETFD, FD_CLOEXEC) == 0, "the plugin's descriptor"));
  offer_to_oom_killer();  // while the process is dumpable: after that its /proc belongs to root
  DRIFTD_CHECK(check_step(drop_capabilities(), "capset"));
  DRIFTD_CHECK(check_step(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "PR_SET_PDEATHSIG"));
  if (::getppid() != parent) return fail(Code::cancelled, "worker: the agent is gone already");
  DRIFTD_CHECK(check_step(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"));
  DRIFTD_CHECK(check_step(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "PR_SET_DUMPABLE"));
  DRIFTD_CHECK(check_step(limit(RLIMIT_CORE, 0), "RLIMIT_CORE"));
  DRIFTD_CHECK(check_step(limit(RLIMIT_NOFILE, kMaxFiles), "RLIMIT_NOFILE"));
  DRIFTD_CHECK(check_step(close_others(keep), "close_range"));
  DRIFTD_CHECK(check_step(::clearenv() == 0, "clearenv"));
  DRIFTD_CHECK(check_step(::chdir("/") == 0, "chdir /"));
  ::umask(077);
  // As in the agent, where sessions run in-process: writing to a closed peer fails with EPIPE and kills nobody.
  std::signal(SIGPIPE, SIG_IGN);
  return {};
}

Result<std::string> lock_process(const JailSpec& spec) {
  const int threads = thread_count();
  if (threads > kThreads || threads < 1) {
    return fail(Code::denied, fmt::format("worker: expected one thread before the jail, found {} in /proc/self/task; "
                                          "report this as a bug of driftd",
                                          threads));
  }
  const int landlock = jail::landlock_version();
  const bool seccomp = jail::has_seccomp();
  DRIFTD_CHECK(check_step(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"));
  if (landlock > 0) DRIFTD_CHECK(jail::enter_landlock(landlock, spec));
  if (seccomp) DRIFTD_CHECK(jail::enter_seccomp(spec));
  return jail::render(landlock, seccomp, jail::missing_landlock_reason());
}

std::string describe_kernel_jail() {
  return jail::render(jail::landlock_version(), jail::has_seccomp(), jail::missing_landlock_reason());
}

Status require_full_jail() {
  if (jail::landlock_version() > 0 && jail::has_seccomp()) return {};
  return fail(Code::unsupported, describe_kernel_jail());
}

std::string jail::render(int landlock, bool seccomp, const std::string& lack) {
  return (landlock > 0 ? fmt::format("landlock {}", landlock) : fmt::format("no landlock ({})", lack)) +
         (seccomp ? ", seccomp" : ", no seccomp (kernel)");
}

}  // namespace driftd::worker
