// SPDX-License-Identifier: Apache-2.0
#include "host/worker_budgets.hpp"

#include <fmt/format.h>

#include "host/seconds.hpp"

namespace driftd::host {

std::optional<WorkerBudgets::Exceeded> WorkerBudgets::check(const Usage& used, const Calls& running) {
  rss_bytes_ = used.rss_bytes;
  if (budgets_.rss_bytes > 0 && used.rss_bytes > budgets_.rss_bytes) {
    return Exceeded{
        "rss", fmt::format("RSS {} MiB over the budget of {} MiB", used.rss_bytes >> 20, budgets_.rss_bytes >> 20)};
  }
  if (used.threads > budgets_.threads)
    return Exceeded{"threads", fmt::format("{} threads over the budget of {}", used.threads, budgets_.threads)};
  if (budgets_.cpu.count() == 0) return std::nullopt;
  return check_cpu(used.cpu, running);
}

std::optional<WorkerBudgets::Exceeded> WorkerBudgets::check_cpu(std::chrono::milliseconds cpu, const Calls& running) {
  if (!running.empty()) idle_cpu_.reset();
  if (running.empty() && !idle_cpu_) idle_cpu_ = cpu;
  if (idle_cpu_ && cpu - *idle_cpu_ > budgets_.cpu) {
    return Exceeded{"cpu", fmt::format("CPU {} over the budget of {} while no call ran",
                                       render_seconds(cpu - *idle_cpu_), render_seconds(budgets_.cpu))};
  }
  for (const auto& [id, call] : running) {
    const auto cost = cpu - call->cpu_at_begin;
    if (call->type == ipc::FrameType::watch || cost <= budgets_.cpu) continue;
    return Exceeded{"cpu", fmt::format("CPU {} over the budget of {} in {}", render_seconds(cost),
                                       render_seconds(budgets_.cpu), ipc::call_name(call->type))};
  }
  return std::nullopt;
}

std::optional<WorkerBudgets::Exceeded> WorkerBudgets::check_overdue(const Call& call) const {
  const auto asked = std::chrono::round<std::chrono::milliseconds>(call.deadline - call.begun);
  const bool budgeted = call.type == ipc::FrameType::refresh || call.type == ipc::FrameType::read;
  if (!budgeted || asked + std::chrono::milliseconds(100) < budgets_.call) return std::nullopt;
  return Exceeded{"call", fmt::format("no answer within the budget of {} in {}", render_seconds(budgets_.call),
                                      ipc::call_name(call.type))};
}

}  // namespace driftd::host
