// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "app/executors.hpp"
#include "base/task.hpp"
#include "secrets/program_run.hpp"

namespace driftd::app {

/// Checks the whole store once while the agent runs, with `driftd verify` in a process of its own: it reads each page,
/// which takes as long as the store is large, and gives way to everything else (docs/operate.md). If the store is
/// damaged, it is marked as suspect and the agent's process ends with 74: the next start checks all of it before it is
/// used, and repairs it or refuses it. Core thread.
class StoreCheck {
 public:
  /// `driftd` is the program that checks; empty: this process's own.
  StoreCheck(std::filesystem::path data_dir, Executors& executors, std::string driftd = {});
  /// Begins the check and returns. To be called once.
  void begin();
  /// Ends it soon if it is under way. Idempotent.
  void cancel();
  bool idle() const { return !running_; }  ///< nothing is under way

 private:
  Task<void> run();
  [[noreturn]] void end_damaged(const std::string& found) const;

  Executors& executors_;
  std::filesystem::path data_dir_;
  std::string driftd_;
  std::shared_ptr<secrets::ProgramRun> check_;
  bool running_ = false;
};

}  // namespace driftd::app
