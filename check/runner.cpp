// SPDX-License-Identifier: Apache-2.0
#include "check/runner.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "check/stage.hpp"

namespace driftd::check {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPage = 4096, kMostSaid = 8u << 10, kMostText = 1u << 20;
constexpr int kReportFd = 900;  // out of the way of a provider that closes what it finds
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kPatience = 5;
#else
constexpr int kPatience = 1;
#endif

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    for (int fd : {read, write}) {
      if (fd >= 0) ::close(fd);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_write() { ::close(std::exchange(write, -1)); }
};

/// Where the child writes what it is doing; the parent reads it when the child can no longer say.
struct SharedPage {
  char* at;
  SharedPage() {
    void* made = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    at = static_cast<char*>(made);
  }
  ~SharedPage() { ::munmap(at, kPage); }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  std::string text() const {
    const std::string said(at, ::strnlen(at, kPage));
    return said.empty() ? said : " (" + said + ")";
  }
};

// ---- in the child

void write_all(int fd, const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::write(fd, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the parent is gone
    at += static_cast<std::size_t>(n);
  }
}

/// One byte of Ending, four of length, the text.
std::string framed(Ending ending, std::string text) {
  if (text.size() > kMostText) text.resize(kMostText);
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string out(5, '\0');
  out[0] = static_cast<char>(ending);
  std::memcpy(out.data() + 1, &length, sizeof length);
  return out + text;
}

void prepare_child(int report, int said) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, 0);
  ::dup2(null, 1);
  ::dup2(said, 2);
  ::dup2(report, kReportFd);
  ::fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
  ::close_range(3, kReportFd - 1, 0);
  ::close_range(kReportFd + 1, ~0U, 0);
}

std::string verdict_of(const std::function<std::string()>& work) {
  try {
    return framed(Ending::passed, work());
  } catch (const NotApplicable& e) {
    return framed(Ending::not_applicable, e.what());
  } catch (const NotMade& e) {
    return framed(Ending::not_made, e.what());
  } catch (const Broken& e) {
    return framed(Ending::broken, e.what());
  } catch (const std::exception& e) {
    return framed(Ending::broken, fmt::format("an exception ended the check: {}", e.what()));
  } catch (...) {
    return framed(Ending::broken, "an exception that is no std::exception ended the check");
  }
}

[[noreturn]] void child(const SharedPage& page, int report, int said, const std::function<std::string()>& work) {
  prepare_child(report, said);
  share_stage(page.at, kPage);
  const pid_t self = ::getpid();
  const std::string verdict = verdict_of(work);
  if (::getpid() == self) write_all(kReportFd, verdict);  // not a process that the provider forked
  ::_exit(0);
}

// ---- in the parent

/// What one child has said so far.
struct Heard {
  std::string report, said;
  bool report_open = true, said_open = true;

  std::optional<Outcome> verdict() const {
    std::uint32_t length = 0;
    if (report.size() < 5) return std::nullopt;
    std::memcpy(&length, report.data() + 1, sizeof length);
    if (report.size() < 5 + std::size_t{length}) return std::nullopt;
    return Outcome{static_cast<Ending>(report[0]), report.substr(5, length), {}, {}};
  }
};

/// Takes what is there without waiting; false: the other end is closed.
bool drain(int fd, std::string& into, std::size_t most) {
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n == 0) return false;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    into.append(buffer, static_cast<std::size_t>(n));
    if (into.size() > most) into.erase(0, into.size() - most);
  }
}

bool ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/// Until the child gave its verdict, ended, or `until` came; then false.
bool listen(pid_t pid, int report, int said, Clock::time_point until, Heard& heard) {
  while (Clock::now() < until) {
    pollfd fds[2] = {{heard.report_open ? report : -1, POLLIN, 0}, {heard.said_open ? said : -1, POLLIN, 0}};
    (void)::poll(fds, 2, 20);
    const bool over = ended(pid);  // before the last bytes are taken
    if (heard.said_open) heard.said_open = drain(said, heard.said, kMostSaid);
    if (heard.report_open) heard.report_open = drain(report, heard.report, kMostText + 5);
    if (over || heard.verdict()) return true;
  }
  return false;
}

std::string cause_of_death(int status, const SharedPage& page) {
  if (WIFSIGNALED(status)) {
    return fmt::format("killed by signal {} ({}){}", WTERMSIG(status), ::strsignal(WTERMSIG(status)), page.text());
  }
  return fmt::format(
      "exited with {} in the middle of the check{}; a provider never ends the process, it answers a status",
      WEXITSTATUS(status), page.text());
}

Outcome watch_child(pid_t pid, int report, int said, std::chrono::milliseconds limit, const SharedPage& page) {
  Heard heard;
  const bool in_time = listen(pid, report, said, Clock::now() + limit * kPatience, heard);
  ::kill(-pid, SIGKILL);  // before the child is reaped: its number is still its own
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  Outcome out = heard.verdict().value_or(Outcome{Ending::broken, cause_of_death(status, page), {}, {}});
  if (!in_time) {
    out = {Ending::broken,
           fmt::format("not finished within the limit of {} s{}", (limit * kPatience).count() / 1000.0, page.text()),
           {},
           {}};
  }
  out.said = std::move(heard.said);
  return out;
}

}  // namespace

const char* render(Ending ending) {
  static constexpr const char* kNames[] = {"passed", "broken", "not made", "not applicable"};
  return kNames[static_cast<int>(ending)];
}

Outcome run_apart(std::chrono::milliseconds limit, const std::function<std::string()>& work) {
  Pipe report, said;
  const SharedPage page;
  const auto start = Clock::now();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) child(page, report.write, said.write, work);
  ::setpgid(pid, pid);  // whoever comes first
  report.close_write();
  said.close_write();
  ::fcntl(report.read, F_SETFL, O_NONBLOCK);
  ::fcntl(said.read, F_SETFL, O_NONBLOCK);
  Outcome out = watch_child(pid, report.read, said.read, limit, page);
  out.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  return out;
}

Outcome run_check(const Check& check, const Subject& subject) {
  return run_apart(check.limit, [&] { return check.run(subject), std::string(); });
}

}  // namespace driftd::check
