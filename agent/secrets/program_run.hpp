// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/task.hpp"
#include "config/programs.hpp"

namespace driftd::secrets {

inline constexpr std::size_t kMaxAnswer = 65'536;  ///< maximum bytes of a program's standard output

/// A running program, the leader of its own session and process group. Its destructor kills the group and reaps the
/// program.
struct ProgramChild {
  pid_t pid = -1;
  int out = -1, errors = -1, end = -1;  ///< read ends of stdout and stderr; pidfd
  ProgramChild() = default;
  ProgramChild(ProgramChild&& other) noexcept { *this = std::move(other); }
  ProgramChild& operator=(ProgramChild&& other) noexcept;
  ~ProgramChild() { reap(); }
  void kill() const;  ///< kills the whole process group
  int reap();         ///< kills the rest of the group and waits; returns the wait status of the program
};

/// Returns the program's environment: PATH, HOME and LANG of the agent, and the variables that its entry names.
std::vector<std::string> program_environment(const config::Program& program);

/// One run of a program, without a shell: stdin is /dev/null, only the first three descriptors are open, signals are
/// default, and the environment is program_environment(). Core thread; file system and spawn run on `io`.
class ProgramRun : public std::enable_shared_from_this<ProgramRun> {
 public:
  ProgramRun(asio::any_io_executor core, asio::any_io_executor io, const config::ProgramUse& use);
  ~ProgramRun();
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  /// To be called once. Returns the bytes of stdout if the program exited with 0. Returns `not_found`, `denied` or
  /// `invalid` if it may not be run any more (config::check_program), `deadline` or `cancelled` if it was killed,
  /// `budget` for more than kMaxAnswer, and `unavailable` if it could not start, was killed by a signal, or exited
  /// with another code. No message contains what it printed.
  static Task<Result<std::string>> run(std::shared_ptr<ProgramRun> self);
  /// Makes run() return soon.
  void cancel();

  /// What it wrote to stdout. After a failed run it is still a secret, which must be removed from errors().
  const std::string& output() const { return out_text_; }
  std::string_view errors() const;  ///< complete lines at the end of its stderr

 private:
  static Task<void> collect(std::shared_ptr<ProgramRun> self, bool errors);
  void append(bool errors, const char* bytes, std::size_t size);
  void drain(bool errors);
  Task<void> finish_reading();
  Result<std::string> evaluate(int status);

  const asio::any_io_executor core_, io_;
  const std::vector<std::string> words_;
  const config::Program program_;
  ProgramChild child_;
  asio::posix::stream_descriptor out_, errors_, end_;
  asio::steady_timer limit_, read_;
  std::string out_text_, error_text_;
  int reading_ = 0;
  bool late_ = false, cancelled_ = false, settling_ = false, too_large_ = false, errors_cut_ = false;
};

}  // namespace driftd::secrets
