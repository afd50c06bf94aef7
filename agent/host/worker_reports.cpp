// SPDX-License-Identifier: Apache-2.0
#include "host/worker_reports.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/log.hpp"
#include "ipc/limits.hpp"
#include "ipc/text.hpp"

namespace driftd::host {
namespace {

constexpr auto kReportInterval = std::chrono::minutes(10);  // between two reports of the same misbehaviour
constexpr std::size_t kMaxReportedText = 1024;              // bytes of a worker's text in a report

}  // namespace

void WorkerReports::report(std::string what, std::string message) {
  const std::string& backend = spec_.session.backend;
  switch (spec_.role) {
    case WorkerRole::scan:
      return;  // the factory reports what it found out about the file
    case WorkerRole::retired:
      return log::room("host").info("[{}] the replaced version: {}: {}", backend, what, message);
    case WorkerRole::trial:
      return log::room("host").info("[{}] trial of {}: {}: {}", backend, spec_.file, what, message);
    case WorkerRole::serving:
      break;
  }
  log::room("host").warn("[{}] {}: {}", backend, what, message);
  if (on_event_) on_event_({backend, std::move(what), std::move(message)});
}

void WorkerReports::record_misbehaviour(const std::string& what) {
  ++misuses_["protocol"];
  last_misuse_ = what;
  report("misbehaved", what);
}

void WorkerReports::record_result(const Call& call, const ipc::CallResult& result) {
  const std::string in(ipc::call_name(call.type));
  record_misuses(result, in);
  record_denied_secrets(result, in);
  if (call.type == ipc::FrameType::refresh && result.code != Code::cancelled)
    last_failure_ = result.code == Code::ok ? std::string() : ipc::printable(result.message, kMaxReportedText);
  if (!result.budget_hit.empty())
    record_budget_hit(ipc::printable(result.budget_hit, 16), ipc::printable(result.message, kMaxReportedText));
}

void WorkerReports::record_misuses(const ipc::CallResult& result, const std::string& in) {
  for (const auto& [rule, times] : result.rules) {
    const std::string name = ipc::printable(rule, 64);
    if (misuses_.size() < ipc::kMaxReportedNames || misuses_.contains(name)) misuses_[name] += times;
  }
  if (result.misuses == 0) return;
  const std::string rule = result.misuse.substr(0, std::min<std::size_t>(result.misuse.find(':'), 64));
  const std::string text = ipc::printable(result.misuse, kMaxReportedText);
  last_misuse_ = fmt::format("{} (in {})", text, in);
  if (should_report("rule " + rule))
    report("misbehaved", fmt::format("broke a rule of the ABI {} times in {}; first: {}", result.misuses, in, text));
}

void WorkerReports::record_denied_secrets(const ipc::CallResult& result, const std::string& in) {
  if (result.denied_secrets == 0) return;
  denied_secrets_ += result.denied_secrets;
  if (!should_report("secret")) return;
  report("secret_denied",
         fmt::format("{} asked for a secret that was not minted for it (in {}); denied, {} times so far", spec_.file,
                     in, denied_secrets_));
}

void WorkerReports::record_budget_hit(const std::string& budget, std::string message) {
  if (budget_hits_.size() < ipc::kMaxReportedNames || budget_hits_.contains(budget)) ++budget_hits_[budget];
  last_budget_hit_ = message;
  if (should_report("budget " + budget)) report("budget", std::move(message));
}

/// Returns true if this misbehaviour has not been reported for ten minutes.
bool WorkerReports::should_report(const std::string& what) {
  const auto now = Steady::now();
  const auto found = last_reported_.find(what);
  if (found == last_reported_.end() && last_reported_.size() >= ipc::kMaxReportedNames) return false;
  if (found != last_reported_.end() && now - found->second < kReportInterval) return false;
  last_reported_[what] = now;
  return true;
}

void WorkerReports::add_to(core::WorkerStatus& status) const {
  status.misuses = misuses_;
  status.last_misuse = last_misuse_;
  status.denied_secrets = denied_secrets_;
  status.budget_hits = budget_hits_;
  status.last_budget_hit = last_budget_hit_;
  status.last_failure = last_failure_;
}

}  // namespace driftd::host
