// SPDX-License-Identifier: Apache-2.0
#include "worker/process_guard.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <clocale>
#include <cstring>

#include "ipc/text.hpp"

namespace driftd::worker {
namespace {

constexpr int kBeyond = 64;                    // copies get numbers above those that plugins close
constexpr std::size_t kShown = 64;             // bytes of printed text in a report
constexpr std::size_t kMaxPrinted = 1u << 20;  // bytes that are read at once, because a thread may print for ever
constexpr int kDescriptorSteps = 64;           // a leak is reported again after this many more descriptors
constexpr std::array<const char*, 3> kNames = {"standard input", "standard output", "standard error"};

std::string current_locale() {
  const char* name = std::setlocale(LC_ALL, nullptr);
  return name == nullptr ? "C" : name;
}

std::string current_folder() {
  std::array<char, 4096> path{};
  return ::getcwd(path.data(), path.size()) == nullptr ? "?" : path.data();
}

std::size_t variables() {
  std::size_t n = 0;
  while (environ != nullptr && environ[n] != nullptr) ++n;
  return n;
}

/// Returns true if a plugin must not handle the signal. Libraries ignore SIGPIPE while they write, so that one may
/// change.
bool watched(int signal) { return signal != SIGPIPE && signal != SIGKILL && signal != SIGSTOP; }

bool same(const struct sigaction& a, const struct sigaction& b) { return a.sa_sigaction == b.sa_sigaction; }

}  // namespace

ProcessGuard::ProcessGuard() : locale_(current_locale()), folder_(current_folder()), environment_(variables()) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    printed_ = ::fcntl(ends[0], F_DUPFD_CLOEXEC, kBeyond);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  for (int fd = 0; fd < 3; ++fd) {
    struct stat st {};
    if (::fstat(fd, &st) != 0) continue;
    files_[static_cast<std::size_t>(fd)] = {st.st_dev, st.st_ino, ::fcntl(fd, F_DUPFD_CLOEXEC, kBeyond)};
  }
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask_);
  umask_ = ::umask(0);
  ::umask(umask_);
  accept_handlers();
}

ProcessGuard::~ProcessGuard() {
  if (printed_ >= 0) ::close(printed_);
  for (const auto& file : files_) {
    if (file.kept >= 0) ::close(file.kept);
  }
}

void ProcessGuard::accept_handlers() {
  const std::lock_guard lock(mutex_);
  for (int s = 1; s < NSIG; ++s) ::sigaction(s, nullptr, &handlers_[static_cast<std::size_t>(s)]);
}

ProcessGuard::Changes ProcessGuard::changes() {
  const std::lock_guard lock(mutex_);
  Changes out;
  check_mask(out);
  check_handlers(out);
  check_locale(out);
  check_folder(out);
  check_umask(out);
  check_environment(out);
  check_printed(out);
  check_files(out);
  check_descriptors(out);
  return out;
}

void ProcessGuard::check_mask(Changes& out) const {
  sigset_t now;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
  for (int s = 1; s < NSIG; ++s) {
    if (::sigismember(&now, s) == ::sigismember(&mask_, s)) continue;
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    return out.push_back(fmt::format("changed the signal mask (signal {})", s));
  }
}

void ProcessGuard::check_handlers(Changes& out) const {
  std::string which;
  for (int s = 1; s < NSIG; ++s) {
    struct sigaction now {};
    const auto& before = handlers_[static_cast<std::size_t>(s)];
    if (!watched(s) || ::sigaction(s, nullptr, &now) != 0 || same(now, before)) continue;
    ::sigaction(s, &before, nullptr);
    which += fmt::format("{}{}", which.empty() ? "" : ", ", s);
  }
  if (!which.empty()) out.push_back(fmt::format("changed the handler of signal {}", which));
}

void ProcessGuard::check_locale(Changes& out) const {
  const std::string now = current_locale();
  if (now == locale_) return;
  std::setlocale(LC_ALL, locale_.c_str());
  out.push_back(fmt::format("changed the locale from {} to {}", locale_, ipc::printable(now, kShown)));
}

void ProcessGuard::check_folder(Changes& out) const {
  const std::string now = current_folder();
  if (now == folder_) return;
  const bool back = ::chdir(folder_.c_str()) == 0;
  out.push_back(fmt::format("changed the working folder from {} to {}{}", folder_, ipc::printable(now, kShown),
                            back ? "" : ", and it cannot be changed back"));
}

void ProcessGuard::check_umask(Changes& out) const {
  const mode_t now = ::umask(umask_);
  if (now != umask_) out.push_back(fmt::format("changed the umask from {:03o} to {:03o}", umask_, now));
}

void ProcessGuard::check_environment(Changes& out) {
  const std::size_t now = variables();
  if (now == environment_) return;
  out.push_back(fmt::format("changed the environment: {} variables, there were {}", now, environment_));
  environment_ = now;  // not restored: other threads may be reading it
}

void ProcessGuard::check_printed(Changes& out) const {
  std::array<char, 4096> text{};
  std::string first;
  std::size_t bytes = 0;
  while (bytes < kMaxPrinted) {
    const ssize_t got = printed_ < 0 ? 0 : ::read(printed_, text.data(), text.size());
    if (got <= 0) break;
    if (bytes == 0)
      first = ipc::printable({text.data(), std::min<std::size_t>(static_cast<std::size_t>(got), kShown)}, kShown);
    bytes += static_cast<std::size_t>(got);
  }
  if (bytes == 0) return;
  first = first.substr(0, first.find('\n'));
  out.push_back(fmt::format("printed {} bytes on standard output, which is the host's: `{}`", bytes, first));
}

void ProcessGuard::check_files(Changes& out) const {
  for (int fd = 0; fd < 3; ++fd) {
    const auto& file = files_[static_cast<std::size_t>(fd)];
    struct stat st {};
    const bool open = ::fstat(fd, &st) == 0;
    if (open && st.st_dev == file.device && st.st_ino == file.inode) continue;
    if (file.kept >= 0) ::dup2(file.kept, fd);
    out.push_back(fmt::format("{} {}", open ? "replaced" : "closed", kNames[static_cast<std::size_t>(fd)]));
  }
}

/// Reports many open descriptors. The lowest free number is about the number of those that stay open.
void ProcessGuard::check_descriptors(Changes& out) {
  rlimit file_limit{};
  const int lowest = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  const bool known = ::getrlimit(RLIMIT_NOFILE, &file_limit) == 0;
  if (lowest >= 0) ::close(lowest);
  const int now = lowest < 0 ? static_cast<int>(file_limit.rlim_cur) : lowest;
  const bool many = known && static_cast<rlim_t>(now) * 2 > file_limit.rlim_cur;
  if (!many || now < reported_descriptors_ + kDescriptorSteps) return;
  reported_descriptors_ = now;
  out.push_back(
      fmt::format("holds {} of {} descriptors open; close them before the call returns", now, file_limit.rlim_cur));
}

}  // namespace driftd::worker
