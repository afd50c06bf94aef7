// SPDX-License-Identifier: Apache-2.0
#include "secrets/program_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/fatal.hpp"

namespace driftd::secrets {
namespace {

constexpr std::size_t kMaxErrorText = 4096;                           // bytes kept from the end of stderr
constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";  // PATH if the agent has none
constexpr int kMaxOrphanTries = 100;  // waits for processes that the program left behind, 1 s together
constexpr auto kOrphanPause = std::chrono::milliseconds(10);

void wipe(std::string& text) {
  OPENSSL_cleanse(text.data(), text.size());
  text.clear();
}

void close_all(std::initializer_list<int> descriptors) {
  for (const int fd : descriptors) {
    if (fd >= 0) ::close(fd);
  }
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// Returns the first non-zero result; 0 if no call failed.
int first_of(std::initializer_list<int> failures) {
  const auto* found = std::find_if(failures.begin(), failures.end(), [](int one) { return one != 0; });
  return found == failures.end() ? 0 : *found;
}

/// Calls posix_spawn(3) with `out` and `errors` as descriptors 1 and 2. Returns 0, or errno. Every action is checked: a
/// missing one would leave the program with a descriptor of ours.
int spawn(std::vector<std::string> words, std::vector<std::string> environment, int out, int errors, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  int failed = first_of(
      {::posix_spawn_file_actions_init(&actions), ::posix_spawnattr_init(&attributes),
       ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0),
       ::posix_spawn_file_actions_adddup2(&actions, out, 1), ::posix_spawn_file_actions_adddup2(&actions, errors, 2),
       ::posix_spawn_file_actions_addclosefrom_np(&actions, 3), ::posix_spawnattr_setsigmask(&attributes, &none),
       ::posix_spawnattr_setsigdefault(&attributes, &all),
       ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID)});
  const auto argv = pointers(words), envp = pointers(environment);
  if (failed == 0) failed = ::posix_spawn(&pid, words.front().c_str(), &actions, &attributes, argv.data(), envp.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return failed;
}

/// Makes a pipe whose write end is above the standard descriptors, so that dup2 never gets two equal descriptors.
/// Returns 0, or errno.
int make_pipe(int (&ends)[2]) {
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  const int high = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
  const int failed = high < 0 ? errno : 0;
  ::close(std::exchange(ends[1], high));
  return failed;
}

Result<ProgramChild> start(const std::vector<std::string>& words, const config::Program& program) {
  DRIFTD_CHECK(config::check_program(program.path));
  ProgramChild out;
  int stdout_pipe[2] = {-1, -1}, stderr_pipe[2] = {-1, -1};
  int failed = make_pipe(stdout_pipe);
  if (failed == 0) failed = make_pipe(stderr_pipe);
  out.out = stdout_pipe[0];
  out.errors = stderr_pipe[0];
  if (failed == 0) {
    failed = spawn(words, program_environment(program), stdout_pipe[1], stderr_pipe[1], out.pid);
    if (failed != 0) out.pid = -1;
  }
  close_all({stdout_pipe[1], stderr_pipe[1]});
  if (failed == 0) {
    out.end = static_cast<int>(::syscall(SYS_pidfd_open, out.pid, 0));  // Linux 5.3
    failed = out.end < 0 ? errno : 0;
  }
  if (failed != 0)
    return fail(Code::unavailable, fmt::format("{} cannot be run: {}", program.path, std::strerror(failed)));
  return out;
}

}  // namespace

ProgramChild& ProgramChild::operator=(ProgramChild&& other) noexcept {
  std::swap(pid, other.pid);
  std::swap(out, other.out);
  std::swap(errors, other.errors);
  std::swap(end, other.end);
  return *this;
}

void ProgramChild::kill() const {
  if (pid > 0) ::kill(-pid, SIGKILL);
}

int ProgramChild::reap() {
  int status = 0;
  kill();  // before the leader is reaped: until then its pid cannot be reused
  while (pid > 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  close_all({out, errors, end});
  pid = out = errors = end = -1;
  return status;
}

std::vector<std::string> program_environment(const config::Program& program) {
  std::vector<std::string> out, names = {"PATH", "HOME", "LANG"};
  names.insert(names.end(), program.environment.begin(), program.environment.end());
  for (const auto& name : names) {
    const bool whole = name.find('=') != std::string::npos;
    const char* value = whole ? nullptr : std::getenv(name.c_str());
    const std::string entry = whole ? name : name + "=" + (value != nullptr ? value : kDefaultPath);
    if (!whole && value == nullptr && name != "PATH") continue;
    const std::string key = entry.substr(0, entry.find('=') + 1);
    std::erase_if(out, [&](const std::string& other) { return other.starts_with(key); });
    out.push_back(entry);
  }
  return out;
}

ProgramRun::ProgramRun(asio::any_io_executor core, asio::any_io_executor io, const config::ProgramUse& use)
    : core_(core),
      io_(std::move(io)),
      words_(use.command),
      program_(use.program),
      out_(core),
      errors_(core),
      end_(core),
      limit_(core),
      read_(core, asio::steady_timer::time_point::max()) {
  out_text_.reserve(kMaxAnswer + 1);  // so that it is never reallocated, which would leave copies in memory
}

ProgramRun::~ProgramRun() { wipe(out_text_); }

void ProgramRun::cancel() {
  cancelled_ = true;
  child_.kill();
}

Task<Result<std::string>> ProgramRun::run(std::shared_ptr<ProgramRun> self) {
  auto work = [words = self->words_, program = self->program_] { return start(words, program); };
  DRIFTD_CO_TRY(self->child_, co_await run_on(self->io_, std::move(work)));
  self->out_.assign(std::exchange(self->child_.out, -1));
  self->errors_.assign(std::exchange(self->child_.errors, -1));
  self->end_.assign(std::exchange(self->child_.end, -1));
  if (self->cancelled_) self->child_.kill();
  self->limit_.expires_after(self->program_.timeout);
  self->limit_.async_wait([weak = self->weak_from_this()](const boost::system::error_code& ended) {
    const auto run = weak.lock();
    if (ended || !run) return;
    run->late_ = true;
    run->child_.kill();
  });
  self->reading_ = 2;
  asio::co_spawn(self->core_, collect(self, false), fatal);
  asio::co_spawn(self->core_, collect(self, true), fatal);
  boost::system::error_code ignored;  // a pidfd becomes readable at the end; if this fails, reap() waits
  co_await self->end_.async_wait(asio::posix::descriptor_base::wait_read,
                                 asio::redirect_error(asio::use_awaitable, ignored));
  self->limit_.cancel();
  const pid_t group = self->child_.pid;
  const int status = self->child_.reap();
  co_await self->finish_reading();
  // As init (in a container) or subreaper, the agent is the parent of the processes that the program left behind.
  for (int left = kMaxOrphanTries; left > 0 && ::waitpid(-group, nullptr, WNOHANG) >= 0; --left) {
    self->read_.expires_after(kOrphanPause);
    co_await self->read_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  co_return self->evaluate(status);
}

/// Reads what the program wrote before its end. Processes that left its group may keep the pipes open, and are not
/// waited for.
Task<void> ProgramRun::finish_reading() {
  boost::system::error_code ignored;
  settling_ = true;  // a read that has just succeeded cannot be cancelled, and must not be followed by another
  out_.cancel(ignored);
  errors_.cancel(ignored);
  while (reading_ > 0) {
    read_.expires_at(asio::steady_timer::time_point::max());
    co_await read_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  drain(false);
  drain(true);
  out_.close(ignored);
  errors_.close(ignored);
  end_.close(ignored);
}

Task<void> ProgramRun::collect(std::shared_ptr<ProgramRun> self, bool errors) {
  auto& pipe = errors ? self->errors_ : self->out_;
  std::array<char, 4096> buffer;
  for (;;) {
    boost::system::error_code ended;
    const std::size_t got =
        co_await pipe.async_read_some(asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, ended));
    self->append(errors, buffer.data(), got);
    if (ended || self->settling_) break;
  }
  OPENSSL_cleanse(buffer.data(), buffer.size());
  --self->reading_;
  self->read_.cancel();
}

void ProgramRun::append(bool errors, const char* bytes, std::size_t size) {
  if (errors) {
    error_text_.append(bytes, size);
    errors_cut_ = errors_cut_ || error_text_.size() > kMaxErrorText;
    if (error_text_.size() > kMaxErrorText) error_text_.erase(0, error_text_.size() - kMaxErrorText);
    return;
  }
  out_text_.append(bytes, std::min(size, kMaxAnswer + 1 - out_text_.size()));
  if (out_text_.size() <= kMaxAnswer || too_large_) return;
  too_large_ = true;
  child_.kill();
}

/// Drops a line whose beginning was cut off: half a secret would not be recognised.
std::string_view ProgramRun::errors() const {
  const std::string_view all = error_text_;
  return errors_cut_ ? all.substr(std::min(all.find('\n'), all.size())) : all;
}

void ProgramRun::drain(bool errors) {
  auto& pipe = errors ? errors_ : out_;
  boost::system::error_code ended;
  pipe.non_blocking(true, ended);
  std::array<char, 4096> buffer;
  for (int rounds = 0; !ended && rounds < 64; ++rounds) {  // a pipe holds no more than this
    const std::size_t got = pipe.read_some(asio::buffer(buffer), ended);
    append(errors, buffer.data(), got);
  }
  OPENSSL_cleanse(buffer.data(), buffer.size());
}

Result<std::string> ProgramRun::evaluate(int status) {
  if (cancelled_) return fail(Code::cancelled, "stopped");
  const std::string& path = program_.path;
  if (too_large_) return fail(Code::budget, path + " answered more than 64 KiB");
  if (late_) {
    return fail(Code::deadline, fmt::format("{} did not end within {} s: killed", path,
                                            static_cast<double>(program_.timeout.count()) / 1000));
  }
  if (WIFSIGNALED(status)) {
    return fail(Code::unavailable,
                fmt::format("{} was killed by signal {} ({})", path, WTERMSIG(status), ::strsignal(WTERMSIG(status))));
  }
  if (WEXITSTATUS(status) != 0)
    return fail(Code::unavailable, fmt::format("{} exited with {}", path, WEXITSTATUS(status)));
  return std::move(out_text_);
}

}  // namespace driftd::secrets
