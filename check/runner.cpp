// SPDX-License-Identifier: Apache-2.0
#include "check/runner.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "check/host.hpp"
#include "check/interrupt.hpp"
#include "check/listing.hpp"
#include "check/orphans.hpp"
#include "check/progress.hpp"
#include "check/registry.hpp"

namespace driftd::check {
namespace {

using Clock = std::chrono::steady_clock;

/// Starts each report. Anything without it on the report's descriptor was not written by the check.
using Nonce = std::array<char, 16>;

constexpr std::size_t kHead = sizeof(Nonce) + 5, kMaxStderr = 8u << 10, kMaxText = 1u << 20;
constexpr rlim_t kReportFd = 900;  // high, so that a provider which closes low descriptors does not hit it
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kTimeFactor = 5;
#else
constexpr int kTimeFactor = 1;
#endif

[[noreturn]] void fail_at(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

Nonce fresh_nonce() {
  Nonce out;
  if (::getrandom(out.data(), out.size(), 0) != static_cast<ssize_t>(out.size())) fail_at("getrandom");
  return out;
}

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail_at("pipe");
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
  /// Moves the write end to a descriptor number as high as the limit allows.
  void move_write() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t from = limit.rlim_cur > 16 ? std::min(kReportFd, limit.rlim_cur - 16) : 0;
    const int high = ::fcntl(write, F_DUPFD_CLOEXEC, static_cast<int>(from));
    if (high < 0) fail_at("a descriptor for the report of a check (raise the limit of open files: ulimit -n 1024)");
    close_write();
    write = high;
  }
};

/// The child writes here what it is doing. The parent reads it after the child has died.
struct SharedPage {
  ProgressPage* at;
  SharedPage() {
    void* made = ::mmap(nullptr, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) fail_at("mmap");
    at = new (made) ProgressPage;
  }
  ~SharedPage() { ::munmap(at, sizeof *at); }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  std::string text() const {
    const std::string child_stderr(at->text, ::strnlen(at->text, sizeof at->text));
    return child_stderr.empty() ? child_stderr : " (" + child_stderr + ")";
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

constexpr unsigned kDiffers = 0x10;

/// Encodes a verdict: the nonce, one byte of Ending (and kDiffers), four bytes of length, the text.
std::string frame_verdict(const Nonce& nonce, Outcome verdict) {
  if (verdict.text.size() > kMaxText) verdict.text.resize(kMaxText);
  const auto length = static_cast<std::uint32_t>(verdict.text.size());
  std::string out(nonce.data(), nonce.size());
  out += static_cast<char>(static_cast<unsigned>(verdict.ending) | (verdict.differs ? kDiffers : 0));
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  return out + verdict.text;
}

/// Leaves the child with descriptors 0 to 2 and the report's, and no other.
void prepare_child(int report, int child_stderr) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, 0);
  ::dup2(null, 1);
  ::dup2(child_stderr, 2);
  const auto kept = static_cast<unsigned>(report);
  if (kept > 3) ::close_range(3, kept - 1, 0);
  ::close_range(kept + 1, ~0U, 0);
  reset_interrupts();
}

Outcome run_work(const std::function<std::string()>& work) {
  try {
    return {Ending::passed, work(), {}, {}};
  } catch (const CheckNotApplicable& e) {
    return {Ending::not_applicable, e.what(), {}, {}};
  } catch (const CheckNotMade& e) {
    return {Ending::not_made, e.what(), {}, {}};
  } catch (const ListingDiffers& e) {
    return {Ending::broken, e.what(), {}, {}, true};
  } catch (const RuleBroken& e) {
    return {Ending::broken, e.what(), {}, {}};
  } catch (const std::exception& e) {
    return {Ending::broken, fmt::format("an exception ended the check: {}", e.what()), {}, {}};
  } catch (...) {
    return {Ending::broken, "an exception that is no std::exception ended the check", {}, {}};
  }
}

/// The parameters of one child.
struct Task {
  const SharedPage& page;
  int report, child_stderr;
  const Nonce& nonce;
};

[[noreturn]] void child(const Task& task, const std::function<std::string()>& work) {
  prepare_child(task.report, task.child_stderr);
  share_progress(task.page.at);
  const pid_t self = ::getpid();
  const std::string verdict = frame_verdict(task.nonce, run_work(work));
  if (::getpid() == self) write_all(task.report, verdict);  // a process that the provider forked must not report
  ::_exit(0);
}

// ---- in the parent

/// What one child has written so far.
struct ChildOutput {
  explicit ChildOutput(const Nonce& nonce) : nonce(nonce) {}
  const Nonce& nonce;
  std::string report, child_stderr;
  bool report_open = true, stderr_open = true;

  /// Returns true if something other than the check wrote to the report.
  bool forged() const {
    const std::size_t known = std::min(report.size(), nonce.size());
    const bool ending = report.size() <= nonce.size() || ending_code() <= static_cast<unsigned>(Ending::not_applicable);
    return !std::equal(report.begin(), report.begin() + static_cast<std::ptrdiff_t>(known), nonce.begin()) || !ending;
  }
  std::optional<Outcome> verdict() const {
    if (forged()) {
      return Outcome{Ending::broken,
                     "something was written to the descriptor of the check's report; a provider writes to descriptors "
                     "that it opened itself, and to no other",
                     {},
                     {}};
    }
    std::uint32_t length = 0;
    if (report.size() < kHead) return std::nullopt;
    std::memcpy(&length, report.data() + kHead - sizeof length, sizeof length);
    if (report.size() < kHead + std::size_t{length}) return std::nullopt;
    const bool differs = static_cast<unsigned char>(report[nonce.size()]) != ending_code();
    return Outcome{static_cast<Ending>(ending_code()), report.substr(kHead, length), {}, {}, differs};
  }

 private:
  unsigned ending_code() const { return static_cast<unsigned char>(report[nonce.size()]) & ~kDiffers; }
};

/// Reads what is available without waiting. Returns false if the other end is closed. Keeps the last `max_bytes` bytes.
bool read_available(int fd, std::string& into, std::size_t max_bytes) {
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n == 0) return false;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    into.append(buffer, static_cast<std::size_t>(n));
    if (into.size() > max_bytes) into.erase(0, into.size() - max_bytes);
  }
}

bool ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/// Waits until the child has reported its verdict or has ended. Returns false if `until` or a signal came first.
bool await_verdict(pid_t pid, int report, int child_stderr, Clock::time_point until, ChildOutput& output) {
  while (Clock::now() < until && interrupted() == nullptr) {
    pollfd fds[2] = {{output.report_open ? report : -1, POLLIN, 0},
                     {output.stderr_open ? child_stderr : -1, POLLIN, 0}};
    (void)::poll(fds, 2, 20);
    const bool over = ended(pid);  // looked at before the last bytes are read
    if (output.stderr_open) output.stderr_open = read_available(child_stderr, output.child_stderr, kMaxStderr);
    if (output.report_open) output.report_open = read_available(report, output.report, kMaxText + kHead);
    if (over || output.verdict()) return true;
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

/// Returns the outcome of a child that was ended before it had a verdict.
Outcome cut_off(std::chrono::milliseconds limit, const SharedPage& page) {
  if (interrupted() != nullptr) return {Ending::not_made, fmt::format("ended by {}", interrupted()), {}, {}};
  const std::string text =
      fmt::format("not finished within the limit of {} s{}", static_cast<double>(limit.count()) / 1000, page.text());
  if (page.at->busy_until_ns <= mono_ns()) return {Ending::broken, text, {}, {}};
  return {Ending::not_made,
          "too slow to judge: " + text + ", and each call was within its deadline; give settings that list less",
          {},
          {}};
}

/// Returns the verdict. It becomes `broken` if the child left a process running.
Outcome fail_on_orphan(Outcome verdict, const std::string& orphan) {
  if (orphan.empty() || verdict.ending == Ending::broken) return verdict;
  verdict.ending = Ending::broken;
  verdict.text = orphan + " was left running, in a process group or session of its own; a provider starts no process";
  return verdict;
}

Outcome watch_child(pid_t pid, const Task& ends, std::chrono::milliseconds limit, const Orphans& orphans) {
  ChildOutput output(ends.nonce);
  const bool finished = await_verdict(pid, ends.report, ends.child_stderr, Clock::now() + limit, output);
  const Outcome late = finished ? Outcome{} : cut_off(limit, ends.page);
  ::kill(-pid, SIGKILL);  // before the child is reaped, so that the pid is still its own
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string orphan = orphans.end();
  Outcome out =
      finished
          ? fail_on_orphan(
                output.verdict().value_or(Outcome{Ending::broken, cause_of_death(status, ends.page), {}, {}}), orphan)
          : late;
  out.child_stderr = std::move(output.child_stderr);
  return out;
}

}  // namespace

const char* render(Ending ending) {
  static constexpr const char* kNames[] = {"passed", "broken", "not made", "not applicable"};
  return kNames[static_cast<int>(ending)];
}

Outcome run_in_child(std::chrono::milliseconds limit, const std::function<std::string()>& work) {
  limit *= kTimeFactor;
  Pipe report, child_stderr;
  report.move_write();
  const Nonce nonce = fresh_nonce();
  const SharedPage page;
  const Orphans orphans;
  const auto start = Clock::now();
  set_busy_until(mono_ns() + std::chrono::nanoseconds(limit).count());  // for this process, in case it is the child of
                                                                        // a check itself
  const pid_t pid = ::fork();
  if (pid < 0) fail_at("fork");
  if (pid == 0) child({page, report.write, child_stderr.write, nonce}, work);
  ::setpgid(pid, pid);  // parent and child both set it: whichever runs first
  report.close_write();
  child_stderr.close_write();
  ::fcntl(report.read, F_SETFL, O_NONBLOCK);
  ::fcntl(child_stderr.read, F_SETFL, O_NONBLOCK);
  Outcome out = watch_child(pid, {page, report.read, child_stderr.read, nonce}, limit, orphans);
  set_busy_until(0);
  out.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  return out;
}

Outcome run_check(const Check& check, const Subject& subject) {
  Outcome out = run_in_child(check.limit, [&] { return check.run(subject), std::string(); });
  // A provider that keeps borrowed memory reads foreign bytes, which also seem to change by themselves.
  if (!out.differs || group_of(check) == "memory") return out;
  const Outcome own_change = run_in_child(check.limit, [&] { return difference_over_time(subject); });
  if (own_change.ending != Ending::passed || own_change.text.empty()) return out;
  out.ending = Ending::not_made;
  out.text = fmt::format(
      "the system changes while it is looked at ({}): check a quiet one; what changes by itself belongs "
      "into `status`, or is declared volatile in the schema",
      own_change.text);
  return out;
}

}  // namespace driftd::check
