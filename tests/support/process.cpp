// SPDX-License-Identifier: Apache-2.0
#include "support/process.hpp"

#include "support/patience.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace driftd::test {
namespace {

using Steady = std::chrono::steady_clock;

/// A program to run. The constructor allocates everything that run() needs, because the child of a process with threads
/// must not allocate: if another thread held the allocator's lock at the fork, nobody releases it in the child (seen
/// under AddressSanitizer).
class Program {
 public:
  Program(std::vector<std::string> command, const std::map<std::string, std::string>& env, const std::string& user)
      : command_(std::move(command)),
        environment_(merged(env)),
        argv_(pointers(command_)),
        envp_(pointers(environment_)) {
    if (!user.empty() && ::getuid() == 0) set_user(user);
  }

  /// Replaces the child by the program. Call it after fork().
  [[noreturn]] void run(int out, int err) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(out, 1);
    ::dup2(err, 2);
    if (user_) {
      if (::setgroups(groups_.size(), groups_.data()) != 0 || ::setgid(user_->gid) != 0 || ::setuid(user_->uid) != 0) {
        ::_exit(126);
      }
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of user clears it
    }
    environ = envp_.data();  // execvp uses the PATH of this environment
    ::execvp(argv_[0], argv_.data());
    ::_exit(127);
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (auto& text : texts) out.push_back(text.data());
    out.push_back(nullptr);
    return out;
  }
  static std::vector<std::string> merged(const std::map<std::string, std::string>& env) {
    std::vector<std::string> out;
    for (char** at = environ; *at != nullptr; ++at) {
      const std::string one = *at;
      if (!env.contains(one.substr(0, one.find('=')))) out.push_back(one);
    }
    for (const auto& [key, value] : env) out.push_back(key + "=" + value);
    return out;
  }
  void set_user(const std::string& user) {
    passwd entry{};
    passwd* found = nullptr;
    std::vector<char> texts(16'384);
    ::getpwnam_r(user.c_str(), &entry, texts.data(), texts.size(), &found);
    if (found == nullptr) throw std::runtime_error("no user " + user);
    user_ = {entry.pw_uid, entry.pw_gid};
    int count = 64;
    groups_.resize(static_cast<std::size_t>(count));
    if (::getgrouplist(user.c_str(), user_->gid, groups_.data(), &count) < 0)
      throw std::runtime_error("too many groups: " + user);
    groups_.resize(static_cast<std::size_t>(count));
  }

  std::vector<std::string> command_, environment_;
  std::vector<char*> argv_, envp_;
  struct User {
    uid_t uid;
    gid_t gid;
  };
  std::optional<User> user_;
  std::vector<gid_t> groups_;
};

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

void read_some(int fd, std::string& to) {
  char buffer[65536];
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  if (got > 0) to.append(buffer, static_cast<std::size_t>(got));
}

/// Reads both pipes until they are closed. Returns false if `until` is over before.
bool drain(pollfd (&fds)[2], Output& output, Steady::time_point until) {
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Steady::now()).count();
    if (left <= 0 || ::poll(fds, 2, static_cast<int>(left)) <= 0) return false;
    for (int i = 0; i < 2; ++i) {
      std::string& to = i == 0 ? output.out : output.err;
      const std::size_t before = to.size();
      if (fds[i].revents != 0) read_some(fds[i].fd, to);
      if (fds[i].revents != 0 && to.size() == before) {
        ::close(fds[i].fd);
        fds[i].fd = -1;
      }
    }
  }
  return true;
}

}  // namespace

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "driftd-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp: " + std::string(std::strerror(errno)));
  path_ = pattern;
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all | std::filesystem::perms::group_exec |
                                          std::filesystem::perms::others_exec);
}

namespace {

/// Prints the reports of sanitizers in the log files of a folder that is about to be removed. A worker has no
/// environment that could send them elsewhere. ctest finds them in this output (FAIL_REGULAR_EXPRESSION). Otherwise the
/// test would pass, because the agent starts the worker again.
void print_sanitizer_reports(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(folder, ignored)) {
    if (file.path().extension() != ".log") continue;
    std::istringstream log(read_file(file.path().string()));
    bool found = false;
    for (std::string line; std::getline(log, line);) {
      found = found || line.find("Sanitizer: ") != line.npos || line.find(": runtime error: ") != line.npos;
      if (found) std::fprintf(stderr, "%s: %s\n", file.path().c_str(), line.c_str());
    }
  }
}

}  // namespace

TempDir::~TempDir() {
  if (kSanitized) print_sanitizer_reports(path_);
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::write(const std::string& name, const std::string& text) const {
  const std::string path = file(name);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

namespace {

// These are below the ephemeral ports of Linux (from 32768), which the kernel gives to sockets of clients.
constexpr int kFirstPort = 20'000, kLastPort = 32'700;

bool is_free(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return bound;
}

/// Reserves a port among all test processes while the returned descriptor is open. Returns -1 if another process has
/// reserved or bound it. The reservation is an abstract Unix socket (unix(7)): like a port, it belongs to the network
/// namespace, and it ends with the process.
int reserve(int port) {
  const std::string name = "driftd-test-port-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw std::runtime_error("socket: " + std::string(std::strerror(errno)));
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 && is_free(port)) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

/// Reservations stay until the process ends, because a server binds its port later, and again after each restart.
int free_port(int second) {
  static std::mt19937 random{std::random_device{}()};
  std::uniform_int_distribution<int> ports(kFirstPort, kLastPort - second);
  for (int tries = 0; tries < 1'000; ++tries) {
    const int port = ports(random), reserved = reserve(port);
    if (reserved < 0) continue;
    if (second == 0 || reserve(port + second) >= 0) return port;
    ::close(reserved);
  }
  throw std::runtime_error("no free port in " + std::to_string(kFirstPort) + " to " + std::to_string(kLastPort));
}

Child::Child(std::vector<std::string> command, Options options) {
  const std::string log = options.log.empty() ? "/dev/null" : options.log;
  const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) throw std::runtime_error("cannot open " + log);
  Program program(std::move(command), options.env, options.user);
  pid_ = ::fork();
  if (pid_ == 0) program.run(fd, fd);
  ::close(fd);
}

Child::~Child() { kill(); }
Child::Child(Child&& other) noexcept : pid_(other.pid_), exit_code_(other.exit_code_) { other.pid_ = -1; }
Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = other.pid_;
    exit_code_ = other.exit_code_;
    other.pid_ = -1;
  }
  return *this;
}

bool Child::running() {
  if (pid_ <= 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  exit_code_ = code_of(status);
  pid_ = -1;
  return false;
}

void Child::signal(int number) const {
  if (pid_ > 0 && number == SIGSTOP)
    freeze(pid_);
  else if (pid_ > 0)
    ::kill(pid_, number);
}

int Child::wait(std::chrono::milliseconds max_wait) {
  eventually([this] { return !running(); }, max_wait);
  return exit_code_;
}

void Child::kill() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  exit_code_ = code_of(status);
  pid_ = -1;
}

Output run(const std::vector<std::string>& command, const std::map<std::string, std::string>& env,
           std::chrono::milliseconds max_time) {
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  Program program(command, env, {});
  const pid_t pid = ::fork();
  if (pid == 0) program.run(out[1], err[1]);
  ::close(out[1]);
  ::close(err[1]);
  Output output;
  pollfd fds[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  const bool ended = drain(fds, output, Steady::now() + max_time * kPatience);
  if (!ended) {
    ::kill(-pid, SIGKILL);
    output.err += "\n(killed: it ran longer than the test allows)";
  }
  for (auto& fd : fds) {
    if (fd.fd >= 0) ::close(fd.fd);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  output.code = code_of(status);
  return output;
}

bool one_of(int attempts, const std::function<bool()>& attempt) {
  for (int i = 0; i < attempts; ++i) {
    if (attempt()) return true;
  }
  return false;
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds max_wait) {
  const auto until = Steady::now() + max_wait * kPatience;
  while (Steady::now() < until) {
    if (condition()) return true;
    ::poll(nullptr, 0, 10);
  }
  return condition();
}

void freeze(pid_t pid) {
  ::kill(pid, SIGSTOP);
  const auto is_stopped = [](const std::filesystem::directory_entry& thread) {
    const std::string stat = read_file((thread.path() / "stat").string());
    const auto name_end = stat.rfind(')');  // "pid (name) state …"; the file is empty if the thread has ended
    return name_end == stat.npos || std::string("TtZX").find(stat.at(name_end + 2)) != std::string::npos;
  };
  const auto all_are_stopped = [&] {
    std::error_code ignored;
    const std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", ignored);
    return std::all_of(begin(threads), end(threads), is_stopped);
  };
  if (!eventually(all_are_stopped)) throw std::runtime_error("process " + std::to_string(pid) + " was not stopped");
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string read_files(const std::string& folder) {
  std::string out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) out += read_file(entry.path().string());
  }
  if (out.empty()) throw std::runtime_error(folder + " contains no text");
  return out;
}

}  // namespace driftd::test
