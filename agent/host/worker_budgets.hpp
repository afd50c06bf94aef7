// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "core/ports/session.hpp"
#include "host/call.hpp"
#include "host/worker.hpp"

namespace driftd::host {

/// Compares what a worker uses with the budgets of its backend: memory, threads, and processor time in each call and
/// between calls. Decides and kills nothing itself. Owned by a Supervisor. Core thread.
class WorkerBudgets {
 public:
  struct Exceeded {
    std::string budget;   ///< rss, threads, cpu or call
    std::string message;  ///< for people
  };
  explicit WorkerBudgets(core::Budgets budgets) : budgets_(budgets) {}

  void note_start() { idle_cpu_.reset(); }  ///< another worker begins
  /// Returns the first budget that the worker exceeds, nullopt if none. Processor time of a watch does not count.
  std::optional<Exceeded> check(const Usage& used, const Calls& running);
  /// Returns the wall time budget if `call`, which missed its deadline, is a refresh or read that had all of it.
  std::optional<Exceeded> check_overdue(const Call& call) const;
  std::int64_t rss_bytes() const { return rss_bytes_; }  ///< at the last check

 private:
  std::optional<Exceeded> check_cpu(std::chrono::milliseconds cpu, const Calls& running);

  const core::Budgets budgets_;
  std::optional<std::chrono::milliseconds> idle_cpu_;  ///< processor time of the worker when the last call ended
  std::int64_t rss_bytes_ = 0;
};

}  // namespace driftd::host
