// SPDX-License-Identifier: Apache-2.0
#include "check/process_state.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <system_error>

#include "check/alloc.hpp"
#include "check/check.hpp"

extern char** environ;  // NOLINT

namespace driftd::check {
namespace {

mode_t current_umask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

std::string current_folder() {
  const std::unique_ptr<char, decltype(&std::free)> folder(::getcwd(nullptr, 0), &std::free);
  return folder ? folder.get() : "(gone)";
}

void* handler_of(int number) {
  struct sigaction action {};
  if (::sigaction(number, nullptr, &action) != 0) return nullptr;
  void* out = nullptr;
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    std::memcpy(&out, &action.sa_sigaction, sizeof out);
  } else {
    std::memcpy(&out, &action.sa_handler, sizeof out);
  }
  return out;
}

std::string name_of(const std::string& entry) { return entry.substr(0, entry.find('=')); }

/// Returns the name of the first variable that differs. Empty if none does.
std::string changed_variable(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> only;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only));
  return only.empty() ? "" : name_of(only.front());
}

long entries(const char* folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder), &::closedir);
  long out = 0;
  while (dir && ::readdir(dir.get()) != nullptr) ++out;
  return out - 3;  // without `.`, `..` and the descriptor of this folder (or the main thread)
}

constexpr long kMiB = 1L << 20;

/// A resource that must not grow, with its growth in each round.
struct Series {
  const char* what;
  long Footprint::*member;
  long allowed;  ///< growth per round that counts as noise of the allocator
  std::vector<long> rounds;

  static constexpr std::size_t kMinRounds = 3, kMaxRounds = 10;
  /// Returns true if some round shows no growth; a leak grows in every round.
  bool flat() const {
    return std::any_of(rounds.begin(), rounds.end(), [this](long grown) { return grown <= allowed; });
  }
  /// Returns true if it grew in each round and the growth does not slow down. If it slows down, more rounds follow
  /// until kMaxRounds.
  bool leaks() const {
    const bool steady = rounds.size() >= kMinRounds && rounds.back() * 2 >= rounds.front();
    return !flat() && (steady || rounds.size() >= kMaxRounds);
  }
};

/// Describes what leaks: `14760480 more bytes of memory, 900 more threads`. Empty if nothing does.
std::string leaked(const std::vector<Series>& all) {
  std::string out;
  for (const auto& series : all) {
    if (!series.leaks()) continue;
    const long sum = std::accumulate(series.rounds.begin(), series.rounds.end(), 0L);
    out += fmt::format("{}{} more {}", out.empty() ? "" : ", ", sum, series.what);
  }
  return out;
}

/// Number of calls before the first round, and in each round.
struct Rounds {
  int warmup, times;
};

[[noreturn]] void too_slow(const std::string& what, int made, std::chrono::nanoseconds took) {
  throw CheckNotMade(fmt::format("too slow to judge: {} took {:.1f} s, {} times; give settings that list less", what,
                                 std::chrono::duration<double>(took).count(), made));
}

/// Returns as many calls as fit into the time limit if each takes as long as the first one, in the same proportion.
Rounds fit_rounds(const std::string& what, Rounds wanted, std::chrono::nanoseconds first,
                  std::chrono::nanoseconds time_limit) {
  constexpr Rounds kFewest{2, 5};
  const double all = wanted.warmup + wanted.times * static_cast<double>(Series::kMinRounds);
  const double part =
      static_cast<double>(time_limit.count()) / (all * static_cast<double>(std::max<std::int64_t>(first.count(), 1)));
  if (part >= 1) return wanted;
  const Rounds out{static_cast<int>(wanted.warmup * part), static_cast<int>(wanted.times * part)};
  if (out.warmup < kFewest.warmup || out.times < kFewest.times) too_slow(what, 1, first);
  return out;
}

}  // namespace

ProcessState ProcessState::capture() {
  ProcessState out;
  out.folder = current_folder();
  out.locale = std::setlocale(LC_ALL, nullptr);
  out.umask = current_umask();
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) out.environment.emplace_back(*at);
  std::sort(out.environment.begin(), out.environment.end());
  for (int number = 1; number < NSIG; ++number) out.handlers.push_back(handler_of(number));
  ::pthread_sigmask(SIG_SETMASK, nullptr, &out.mask);
  return out;
}

std::string ProcessState::difference(const ProcessState& later) const {
  if (folder != later.folder) return fmt::format("working folder: expected {}, found {}", folder, later.folder);
  if (locale != later.locale) return fmt::format("locale: expected {}, found {}", locale, later.locale);
  if (umask != later.umask) return fmt::format("umask: expected {:04o}, found {:04o}", umask, later.umask);
  const std::string variable = changed_variable(environment, later.environment);
  if (!variable.empty()) return fmt::format("environment: expected it as it was, found {} changed", variable);
  return {};
}

std::string ProcessState::signal_difference(const ProcessState& later) const {
  for (std::size_t i = 0; i < handlers.size(); ++i) {
    if (handlers[i] == later.handlers[i]) continue;
    return fmt::format("signal {} ({}): expected the handler as it was, found another one", i + 1,
                       ::strsignal(static_cast<int>(i + 1)));
  }
  for (int number = 1; number < NSIG; ++number) {
    const bool now = ::sigismember(&later.mask, number) == 1;
    if ((::sigismember(&mask, number) == 1) == now) continue;
    return fmt::format("signal mask: signal {} ({}) is {} now", number, ::strsignal(number),
                       now ? "blocked" : "let through");
  }
  return {};
}

Footprint Footprint::capture() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  const long rss = owns_malloc() ? resident * ::sysconf(_SC_PAGESIZE) : 0;
  return {live_bytes(), rss, entries("/proc/self/fd"), entries("/proc/self/task")};
}

void expect_flat(const std::string& what, int warmup, int times, const std::function<void()>& work, const Pace& pace) {
  const auto begin = pace.now();
  work();
  const Rounds rounds = fit_rounds(what, {warmup, times}, pace.now() - begin, pace.time_limit);
  warmup = rounds.warmup;
  times = rounds.times;
  std::vector<Series> all{{"bytes of memory", &Footprint::heap, 4096 + 64L * times, {}},
                          {"bytes of resident memory", &Footprint::rss, 8 * kMiB + 4096L * times, {}},
                          {"descriptors", &Footprint::fds, 0, {}},
                          {"threads", &Footprint::threads, 0, {}}};
  for (int i = 1; i < warmup; ++i) work();
  Footprint before = Footprint::capture();
  for (std::size_t round = 1; round <= Series::kMaxRounds; ++round) {
    for (int i = 0; i < times; ++i) {
      work();
      const auto took = pace.now() - begin;
      if (took > pace.time_limit + pace.time_limit / 2)
        too_slow(what, warmup + static_cast<int>(round - 1) * times + i + 1, took);
    }
    const Footprint now = Footprint::capture();
    for (auto& series : all) series.rounds.push_back(now.*series.member - before.*series.member);
    before = now;
    if (const std::string more = leaked(all); !more.empty()) {
      throw RuleBroken(fmt::format(
          "{}: expected no growth after {} of them, found {} after {} further ones, and some in each {} of them; "
          "free what a call makes before it returns, what an instance has in close",
          what, warmup, more, round * static_cast<std::size_t>(times), times));
    }
    const bool at_rest = std::all_of(all.begin(), all.end(), [](const Series& series) { return series.flat(); });
    if (round >= Series::kMinRounds && at_rest) return;
  }
}

Stdio::Stdio(bool also_stderr) : also_stderr_(also_stderr), memory_(::memfd_create("stdout", MFD_CLOEXEC)) {
  if (memory_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  for (int fd = 0; fd <= 2; ++fd) saved_[fd] = ::fcntl(fd, F_DUPFD_CLOEXEC, 100);
  ::dup2(memory_, 1);
  if (also_stderr) ::dup2(memory_, 2);
  for (int fd = 0; fd <= 2; ++fd) {
    struct stat st {};
    if (::fstat(fd, &st) == 0) places_[fd] = {st.st_dev, st.st_ino};
  }
}

Stdio::~Stdio() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (saved_[fd] >= 0) ::dup2(saved_[fd], fd);
    if (saved_[fd] >= 0) ::close(saved_[fd]);
  }
  ::close(memory_);
}

std::string Stdio::printed() const {
  std::string out(200, '\0');
  const ssize_t n = ::pread(memory_, out.data(), out.size(), 0);
  out.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return out;
}

std::string Stdio::redirected() const {
  for (int fd = 0; fd <= 2; ++fd) {
    struct stat st {};
    if (::fstat(fd, &st) != 0) return fmt::format("descriptor {} is closed", fd);
    if (st.st_dev != places_[fd].device || st.st_ino != places_[fd].inode)
      return fmt::format("descriptor {} leads elsewhere", fd);
  }
  return {};
}

}  // namespace driftd::check
