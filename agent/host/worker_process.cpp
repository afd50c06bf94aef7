// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>

#include "host/host.hpp"
#include "host/worker.hpp"

namespace driftd::host {
namespace {

constexpr int kProtocolFd = 3, kLibraryFd = 4;
constexpr int kHigh = 10;                               // copies start here, above the numbers that dup2 overwrites
constexpr auto kExitGrace = std::chrono::seconds(1);    // between the end of the socket and the end of the process
constexpr auto kAgain = std::chrono::milliseconds(10);  // between two waitpid() for a process that a debugger holds

std::string render_exit(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exited with {}", WEXITSTATUS(status));
}

constexpr auto kRemembered = std::chrono::minutes(1);
using Ended = std::chrono::steady_clock::time_point;

/// pid → time of its end; max() while it is alive.
std::map<pid_t, Ended>& workers() {
  static auto* all = new std::map<pid_t, Ended>;
  return *all;
}

void forget_old_workers() {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(workers(),
                [&](const auto& one) { return one.second != Ended::max() && one.second + kRemembered < now; });
}

class Process final : public Worker {
 public:
  Process(asio::any_io_executor core, pid_t pid, int errors)
      : pid_(pid),
        exit_(core),
        errors_(core, errors),
        limit_(core) {
    const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (fd >= 0) exit_.assign(fd);
    workers()[pid] = Ended::max();
  }
  /// Waits up to a second for the end. If SIGKILL has not ended the process by then, init reaps it.
  ~Process() override {
    kill();
    pollfd end{exit_.is_open() ? exit_.native_handle() : -1, POLLIN, 0};
    if (!reaped_) (void)::poll(&end, 1, static_cast<int>(std::chrono::milliseconds(kExitGrace).count()));
    look();
    workers()[pid_] = std::chrono::steady_clock::now();
    forget_old_workers();
  }
  int pid() const override { return pid_; }
  Usage usage() const override;
  void limit_files(int max_files) override {
    const rlimit64 files{static_cast<rlim64_t>(max_files), static_cast<rlim64_t>(max_files)};
    if (!reaped_) ::prlimit64(pid_, RLIMIT_NOFILE, &files, nullptr);
  }
  void kill() override {
    if (!reaped_) ::kill(pid_, SIGKILL);
  }
  asio::posix::stream_descriptor* errors() override { return &errors_; }

  Task<std::string> reap() override {
    limit_.expires_after(kExitGrace);
    limit_.async_wait([pid = pid_](const boost::system::error_code& stopped) {
      if (!stopped) ::kill(pid, SIGKILL);
    });
    boost::system::error_code ignored;  // without a pidfd, kill() below ends it
    if (exit_.is_open()) {
      co_await exit_.async_wait(asio::posix::descriptor_base::wait_read,
                                asio::redirect_error(asio::use_awaitable, ignored));
    } else {
      kill();
    }
    limit_.cancel();
    for (look(); !reaped_; look()) {  // a tracing debugger may delay the end
      limit_.expires_after(kAgain);
      co_await limit_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    co_return render_exit(status_);
  }

 private:
  /// Never blocks: a thread of the process may be stuck in the kernel, in a file system that hangs.
  void look() {
    if (!reaped_) reaped_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  }

  const pid_t pid_;
  asio::posix::stream_descriptor exit_, errors_;
  asio::steady_timer limit_;
  bool reaped_ = false;
  int status_ = 0;
};

/// Returns the first 1 KiB of `/proc/PID/NAME`; empty if it does not exist.
std::string proc_text(pid_t pid, const char* name) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[1024] = {};
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : std::string();
}

/// utime, stime, num_threads and rss: fields 14, 15, 20 and 24 of /proc/PID/stat (proc(5)); the second is the name in
/// parentheses, which may contain anything.
Usage Process::usage() const {
  const std::string text = proc_text(pid_, "stat");
  const std::size_t name_end = text.rfind(')');
  unsigned long long user = 0, system = 0;
  int threads = 0;
  long long pages = 0;
  const bool read =
      name_end != std::string::npos &&
      std::sscanf(text.c_str() + name_end + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %d %*d %*u %*u %lld", &user,
                  &system, &threads, &pages) == 4;
  if (!read) return {};
  const auto ticks = static_cast<unsigned long long>(::sysconf(_SC_CLK_TCK));
  return {pages * ::sysconf(_SC_PAGESIZE), std::chrono::milliseconds((user + system) * 1000 / ticks), threads};
}

/// The descriptors of a worker that is not started yet.
struct SpawnDescriptors {
  int socket[2] = {-1, -1};
  int pipe[2] = {-1, -1};
  int library = -1;
  ~SpawnDescriptors() {
    for (const int fd : {socket[0], socket[1], pipe[0], pipe[1], library}) {
      if (fd >= 0) ::close(fd);
    }
  }
};

Result<pid_t> spawn(const std::string& program, const SpawnDescriptors& ends) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  // stderr first, because dup2 onto 3 must not overwrite a source that is still needed. The sources are CLOEXEC, so
  // exec closes them.
  const int high = ::fcntl(ends.socket[1], F_DUPFD_CLOEXEC, kHigh);
  ::posix_spawn_file_actions_adddup2(&actions, ends.pipe[1], 2);
  ::posix_spawn_file_actions_adddup2(&actions, high, kProtocolFd);
  ::posix_spawn_file_actions_adddup2(&actions, ends.library, kLibraryFd);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, kLibraryFd + 1);
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string name = "driftd-provider-host";
  std::string fd = std::to_string(kProtocolFd);
  std::string parent = std::to_string(::getpid());
  char* argv[] = {name.data(), fd.data(), parent.data(), nullptr};
  char* environment[] = {nullptr};
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, argv, environment);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(high);
  if (failed != 0) return fail(Code::unavailable, fmt::format("cannot start {}: {}", program, std::strerror(failed)));
  return pid;
}

}  // namespace

bool is_worker(int pid) {
  forget_old_workers();
  return workers().contains(pid);
}

Result<StartedWorker> start_process(asio::any_io_executor core, const std::string& program, int library) {
  SpawnDescriptors ends;
  ends.library = ::fcntl(library, F_DUPFD_CLOEXEC, kHigh);
  const bool paired = ends.library >= 0 && ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.socket) == 0;
  if (!paired || ::pipe2(ends.pipe, O_CLOEXEC) != 0) {
    return fail(Code::unavailable, fmt::format("cannot start a worker: {}", std::strerror(errno)));
  }
  DRIFTD_TRY(const pid_t pid, spawn(program, ends));
  StartedWorker out;
  out.worker = std::make_unique<Process>(core, pid, std::exchange(ends.pipe[0], -1));
  out.fd = std::exchange(ends.socket[0], -1);
  return out;
}

}  // namespace driftd::host
