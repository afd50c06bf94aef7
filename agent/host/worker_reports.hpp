// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/ports/worker.hpp"
#include "host/call.hpp"
#include "host/supervisor_spec.hpp"

namespace driftd::host {

/// Counts the rules and budgets that a plugin breaks, and reports what the agent should know: to the log and, if the
/// worker serves its backend, as an event. The same misbehaviour is reported every ten minutes at most; the counts are
/// exact. Owned by a Supervisor, whose workers share it. Core thread.
class WorkerReports {
 public:
  using OnEvent = std::function<void(core::SessionEvent)>;
  /// `spec` must outlive this object, which looks at its role at each report.
  WorkerReports(const SupervisorSpec& spec, OnEvent on_event) : spec_(spec), on_event_(std::move(on_event)) {}

  /// Reports at once. `what` is that of a SessionEvent; of a scan nothing is reported.
  void report(std::string what, std::string message);
  /// Counts and reports what our own code in a worker never does. `what` continues a sentence that begins with "the
  /// worker".
  void record_misbehaviour(const std::string& what);
  /// Counts and reports what the worker says about its plugin in the answer of a call.
  void record_result(const Call& call, const ipc::CallResult& result);
  void record_budget_hit(const std::string& budget, std::string message);  ///< `budget`: rss, cpu, records ...

  /// Adds the counts and the last texts to a status.
  void add_to(core::WorkerStatus& status) const;

 private:
  void record_misuses(const ipc::CallResult& result, const std::string& in);
  void record_denied_secrets(const ipc::CallResult& result, const std::string& in);
  bool should_report(const std::string& what);

  const SupervisorSpec& spec_;
  const OnEvent on_event_;
  std::map<std::string, std::uint64_t> misuses_, budget_hits_;
  std::string last_misuse_, last_budget_hit_, last_failure_;
  std::uint64_t denied_secrets_ = 0;
  std::map<std::string, Steady::time_point> last_reported_;  ///< by kind of misbehaviour
};

}  // namespace driftd::host
