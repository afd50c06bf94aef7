// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "secrets/program_answer.hpp"
#include "secrets/program_run.hpp"

namespace driftd::secrets {

/// The answers of the programs that one backend's settings name. Each program runs at once, and again before its answer
/// becomes stale. A failed program is retried after a second to a minute; its last answer stays in use until it
/// expires. Core thread. Its loops keep it alive until stop().
class ProgramValues : public std::enable_shared_from_this<ProgramValues> {
 public:
  /// Called on the core thread, never before start() has returned.
  struct Callbacks {
    /// all values, token → bytes; called only when one changed
    std::function<void(std::map<std::string, std::string>)> values;
    std::function<void(std::string)> missing;  ///< a value is missing (or has expired); the text says why
    std::function<void(std::string)> failing;  ///< a program began to fail; the text says what that means for the
                                               ///< backend
    std::function<void(bool ok)> ran;          ///< a run has ended
  };
  ProgramValues(asio::any_io_executor core, asio::any_io_executor io, const Clock& clock,
                const std::vector<config::ProgramUse>& uses, Callbacks callbacks);

  void start();
  void cancel();      ///< no more callbacks or runs; a running program is killed
  Task<void> stop();  ///< calls cancel() and waits until all loops have ended

 private:
  struct WatchedProgram {
    WatchedProgram(asio::any_io_executor core, config::ProgramUse used);
    config::ProgramUse use;
    ProgramAnswer answer;  ///< empty text: there is no answer
    Nanos taken_ns = 0;    ///< time of the answer
    std::string failure;   ///< error of the last run; empty if it succeeded or has not ended
    bool asked = false;    ///< at least one run has ended
    std::shared_ptr<ProgramRun> run;
    asio::steady_timer due;
    Backoff backoff;
  };
  static Task<void> follow(std::shared_ptr<ProgramValues> self, std::size_t index);
  std::chrono::milliseconds handle_output(WatchedProgram& one, const Result<std::string>& output);
  std::chrono::milliseconds note_failure(WatchedProgram& one, const std::string& why);
  void report_values();

  const asio::any_io_executor core_, io_;
  const Clock& clock_;
  const std::string backend_;
  const Callbacks callbacks_;
  std::vector<std::unique_ptr<WatchedProgram>> all_;
  std::map<std::string, std::string> last_values_;  ///< as last reported
  std::string missing_;                             ///< as last reported
  std::minstd_rand random_{std::random_device{}()};
  asio::steady_timer ended_;
  int loops_ = 0;
  bool stopping_ = false;
};

}  // namespace driftd::secrets
