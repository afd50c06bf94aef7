// SPDX-License-Identifier: Apache-2.0
// What every test with a real server needs: a temporary folder, a free port, a child process that ends with the test,
// and waiting for a condition.
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

/// Returns a TCP port on loopback that was free a moment ago. No other test process gets it while this one lives. If
/// `second` is above 0, the same holds for the port at this distance above the first.
int free_port(int second = 0);

/// A child process in a process group of its own. The destructor kills the group and waits for the child. If the test
/// dies, the child is killed, too.
class Child {
 public:
  struct Options {
    std::string log;                         ///< the file for stdout and stderr; empty: /dev/null
    std::map<std::string, std::string> env;  ///< added to the environment
    std::string user;                        ///< runs as this user if the test runs as root (postgres refuses root)
  };
  Child() = default;
  Child(std::vector<std::string> command, Options options);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;

  pid_t pid() const { return pid_; }
  bool running();
  void signal(int number) const;  ///< sends SIGSTOP by freeze()
  /// Waits for its end. Returns its exit code, 128 + signal, or -1 if it still runs.
  int wait(std::chrono::milliseconds max_wait);
  void kill();

 private:
  pid_t pid_ = -1;
  int exit_code_ = -1;
};

/// Sends SIGSTOP and waits until every thread of the process is stopped. After kill() alone, threads may still run for
/// a moment.
void freeze(pid_t pid);

struct Output {
  int code = -1;
  std::string out, err;
};
/// Runs a command and collects stdout and stderr. Kills it after `max_time`, which a sanitizer makes longer.
Output run(const std::vector<std::string>& command, const std::map<std::string, std::string>& env = {},
           std::chrono::milliseconds max_time = std::chrono::seconds(60));

/// Calls `condition` every 10 ms and returns true as soon as it does. Returns false after `max_wait`, which a sanitizer
/// makes longer.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds max_wait = std::chrono::seconds(20));

/// Returns true as soon as one of the attempts does. For attempts with a time limit: a machine that pauses makes one of
/// them late, not all.
bool one_of(int attempts, const std::function<bool()>& attempt);

std::string read_file(const std::string& path);
/// The contents of all files in a folder and below it, one after the other. Throws if there is none.
std::string read_files(const std::string& folder);

}  // namespace driftd::test
