// SPDX-License-Identifier: Apache-2.0
// What every test with a real server needs: a temporary folder, a free port, a child that dies with the test, a
// condition with a deadline.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace driftd::test {

/// A folder under the system's temporary folder, removed with its contents.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file in it and returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

/// A TCP port on loopback that was free a moment ago and is given to no other test process while this one lives;
/// `other` above 0: so is the one at port + `other`.
int free_port(int other = 0);

/// A child process: stdout and stderr go to `log` (a file). Killed (SIGKILL to its own process group) and reaped in the
/// destructor; also dies when the test dies.
class Child {
 public:
  struct Options {
    std::string log;                         ///< file for stdout+stderr; empty: /dev/null
    std::map<std::string, std::string> env;  ///< added to the environment
    std::string user;                        ///< run as this user when we are root (postgres refuses root)
  };
  Child() = default;
  Child(std::vector<std::string> command, Options options);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;

  pid_t pid() const { return pid_; }
  bool running();
  void signal(int number) const;  ///< SIGSTOP: as freeze() does
  /// Waits for its end at most so long; the exit code, 128 + signal, or -1 when it still runs.
  int wait(std::chrono::milliseconds most);
  void kill();

 private:
  pid_t pid_ = -1;
  int exit_code_ = -1;
};

/// SIGSTOP, and waits until every thread of it stands still: kill() alone returns while another core still runs them.
void freeze(pid_t pid);

struct Output {
  int code = -1;
  std::string out, err;
};
/// Runs a command to its end (at most `most`), collecting stdout and stderr.
Output run(const std::vector<std::string>& command, const std::map<std::string, std::string>& env = {},
           std::chrono::milliseconds most = std::chrono::seconds(60));

/// True as soon as `condition` is; false after `most`, longer under a sanitizer. Polls each 10 ms.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds most = std::chrono::seconds(20));

/// True as soon as one of so many attempts was in time: a machine that pauses makes one of them late, not all.
bool one_of(int attempts, const std::function<bool()>& attempt);

std::string read_file(const std::string& path);

}  // namespace driftd::test
