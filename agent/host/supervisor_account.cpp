// SPDX-License-Identifier: Apache-2.0
// What a plugin uses and which rules it breaks: budgets of memory and time, misuses, denied secrets.
#include <fmt/format.h>
#include <algorithm>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "base/task.hpp"
#include "host/supervisor.hpp"
#include "ipc/limits.hpp"

namespace driftd::host {
namespace {

constexpr auto kUsagePoll = std::chrono::milliseconds(500);
constexpr auto kJailPoll = std::chrono::seconds(2);
constexpr auto kReportInterval = std::chrono::minutes(10);  // between two reports of the same misbehaviour
constexpr std::size_t kMaxTold = 1024;                      // bytes of a worker's text in a report

}  // namespace

/// Renders a time for people, in tenths of a second from one second up.
std::string render_seconds(std::chrono::milliseconds t) {
  if (t.count() >= 1000) t = (t + std::chrono::milliseconds(50)) / 100 * 100;
  if (t.count() % 1000 == 0) return fmt::format("{} s", t.count() / 1000);
  if (t.count() > 1000) return fmt::format("{:.1f} s", static_cast<double>(t.count()) / 1000);
  return fmt::format("{} ms", t.count());
}

void Supervisor::record_result(const Call& call, const ipc::CallResult& result) {
  const std::string in(ipc::call_name(call.type));
  for (const auto& [rule, times] : result.rules) {
    const std::string name = ipc::printable(rule, 64);
    if (status_.misuses.size() < ipc::kMaxReportedNames || status_.misuses.contains(name))
      status_.misuses[name] += times;
  }
  if (result.misuses > 0) {
    const std::string rule = result.misuse.substr(0, std::min<std::size_t>(result.misuse.find(':'), 64));
    status_.last_misuse = fmt::format("{} (in {})", ipc::printable(result.misuse, kMaxTold), in);
    if (should_report("rule " + rule)) {
      report("misbehaved", fmt::format("broke a rule of the ABI {} times in {}; first: {}", result.misuses, in,
                                       ipc::printable(result.misuse, kMaxTold)));
    }
  }
  if (result.denied_secrets > 0) {
    status_.denied_secrets += result.denied_secrets;
    if (should_report("secret")) {
      report("secret_denied",
             fmt::format("{} asked for a secret that was not minted for it (in {}); denied, {} times so far",
                         spec_.file, in, status_.denied_secrets));
    }
  }
  if (call.type == ipc::FrameType::refresh && result.code != Code::cancelled) {
    status_.last_failure = result.code == Code::ok ? std::string() : ipc::printable(result.message, kMaxTold);
  }
  if (!result.budget_hit.empty())
    hit_budget(ipc::printable(result.budget_hit, 16), ipc::printable(result.message, kMaxTold));
}

void Supervisor::hit_budget(const std::string& budget, std::string message) {
  if (status_.budget_hits.size() < ipc::kMaxReportedNames || status_.budget_hits.contains(budget))
    ++status_.budget_hits[budget];
  status_.last_budget_hit = message;
  if (should_report("budget " + budget)) report("budget", std::move(message));
}

/// Returns true if this misbehaviour has not been reported for ten minutes. The counts are always exact.
bool Supervisor::should_report(const std::string& what) {
  const auto now = Steady::now();
  const auto found = last_reported_.find(what);
  if (found == last_reported_.end() && last_reported_.size() >= ipc::kMaxReportedNames) return false;
  if (found != last_reported_.end() && now - found->second < kReportInterval) return false;
  last_reported_[what] = now;
  return true;
}

void Supervisor::watch_usage() {
  if (worker_->pid() == 0) return;
  usage_.expires_after(kUsagePoll);
  usage_.async_wait([weak = weak_from_this()](const boost::system::error_code& stopped) {
    const auto self = weak.lock();
    if (stopped || !self || !self->worker_) return;
    if (!self->within_budgets()) return;
    if (Steady::now() - self->jail_checked_ >= kJailPoll)
      asio::co_spawn(self->options_.core, check_jail_paths(self), fatal);
    self->watch_usage();
  });
}

/// Starts the next worker if a path of the settings was replaced, a link leads elsewhere, or an expected socket now
/// exists: the current worker sees only the old files. Waits while a call is running.
Task<void> Supervisor::check_jail_paths(std::shared_ptr<Supervisor> self) {
  if (self->checking_jail_paths_ || self->jail_paths_.seen.empty()) co_return;
  self->checking_jail_paths_ = true;
  self->jail_checked_ = Steady::now();
  const JailPaths before = self->jail_paths_;
  const auto now = co_await find_jail_paths(self);
  self->checking_jail_paths_ = false;
  const bool same_worker = self->worker_ && self->jail_paths_.seen == before.seen;
  if (now && same_worker && now->seen != before.seen) self->restart_with_new_jail(now->replaced_since(before));
}

void Supervisor::restart_with_new_jail(const std::string& why) {
  const auto busy = [](const auto& one) { return one.second->type != ipc::FrameType::watch; };
  if (!worker_ || killed_ || stopping_ || retired_ || std::any_of(calls_.begin(), calls_.end(), busy)) return;
  needs_new_jail_ = paths_replaced_ = true;
  log::room("host").info(
      "[{}] {} was replaced since the worker started; starting another worker, which sees the new one",
      spec_.session.backend, why);
  kill("the worker is restarted with a new jail");
  set_state("starting");  // callers of ready() wait for the next worker
}

Task<std::optional<Error>> Supervisor::check_replaced_paths(std::shared_ptr<Supervisor> self, Error error) {
  const JailPaths before = self->jail_paths_;
  const bool of_files = error.code == Code::denied || error.code == Code::not_found || error.code == Code::unavailable;
  const bool jailed = self->worker_ && self->worker_->pid() != 0;
  if (!of_files || !jailed || before.seen.empty()) co_return std::nullopt;
  const auto now = co_await find_jail_paths(self);
  const std::string moved = now ? now->replaced_since(before) : std::string();
  if (moved.empty()) co_return std::nullopt;
  self->restart_with_new_jail(moved);
  co_return Error{Code::unavailable,
                  fmt::format("{} was replaced since the worker started, which sees only the old one; another "
                              "worker, which sees the new one, is starting ({})",
                              moved, error.message)};
}

/// Checks memory and threads of the worker and its processor time, in each call and between calls. Returns false if a
/// budget was exceeded; the worker is killed then.
bool Supervisor::within_budgets() {
  const auto& budgets = spec_.session.budgets;
  const Usage used = worker_->usage();
  status_.rss_bytes = used.rss_bytes;
  const auto over = [&](const char* budget, const std::string& reason) {
    hit_budget(budget, reason);
    kill(reason);
    return false;
  };
  if (budgets.rss_bytes > 0 && used.rss_bytes > budgets.rss_bytes) {
    return over("rss",
                fmt::format("RSS {} MiB over the budget of {} MiB", used.rss_bytes >> 20, budgets.rss_bytes >> 20));
  }
  if (used.threads > budgets.threads) {
    return over("threads", fmt::format("{} threads over the budget of {}", used.threads, budgets.threads));
  }
  if (budgets.cpu.count() == 0) return true;
  if (!calls_.empty()) idle_cpu_.reset();
  if (calls_.empty() && !idle_cpu_) idle_cpu_ = used.cpu;
  if (idle_cpu_ && used.cpu - *idle_cpu_ > budgets.cpu) {
    return over("cpu", fmt::format("CPU {} over the budget of {} while no call ran",
                                   render_seconds(used.cpu - *idle_cpu_), render_seconds(budgets.cpu)));
  }
  for (const auto& [id, call] : calls_) {
    const auto cost = used.cpu - call->cpu_at_begin;
    if (call->type == ipc::FrameType::watch || cost <= budgets.cpu) continue;
    return over("cpu", fmt::format("CPU {} over the budget of {} in {}", render_seconds(cost),
                                   render_seconds(budgets.cpu), ipc::call_name(call->type)));
  }
  return true;
}

/// Counts a refresh or read that exceeded the wall time budget of its backend.
void Supervisor::note_overdue(const Call& call) {
  const auto asked = std::chrono::round<std::chrono::milliseconds>(call.deadline - call.begun);
  const bool budgeted = call.type == ipc::FrameType::refresh || call.type == ipc::FrameType::read;
  if (!budgeted || asked + std::chrono::milliseconds(100) < spec_.session.budgets.call) return;
  hit_budget("call", fmt::format("no answer within the budget of {} in {}", render_seconds(spec_.session.budgets.call),
                                 ipc::call_name(call.type)));
}

Status Supervisor::resume() {
  if (status_.state != "parked") return fail(Code::conflict, "the worker is not parked: it is " + status_.state);
  retry_.cancel();
  return {};
}

const core::WorkerStatus& Supervisor::status() {
  const auto now = Steady::now();
  while (!crashes_.empty() && now - crashes_.front() > kCrashWindow) crashes_.pop_front();
  status_.crashes = crashes_.size();
  status_.pid = worker_ ? worker_->pid() : 0;
  status_.file = spec_.file;
  if (info_) status_.version = info_->version;
  return status_;
}

void Supervisor::report(std::string what, std::string message) {
  if (spec_.describe_only) return;  // the factory reports what it found out about the file
  if (retired_)
    return log::room("host").info("[{}] the replaced version: {}: {}", spec_.session.backend, what, message);
  if (spec_.trial)
    return log::room("host").info("[{}] trial of {}: {}: {}", spec_.session.backend, spec_.file, what, message);
  log::room("host").warn("[{}] {}: {}", spec_.session.backend, what, message);
  if (on_event_) on_event_({spec_.session.backend, std::move(what), std::move(message)});
}

}  // namespace driftd::host
