// SPDX-License-Identifier: Apache-2.0
#include "host/session.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "core/scope.hpp"
#include "core/stand_in.hpp"
#include "host/untrusted_input.hpp"
#include "ipc/limits.hpp"

namespace driftd::host {
namespace {

constexpr auto kHealthDeadline = std::chrono::seconds(1);
const core::PageHandler kNoPages;
constexpr auto kDemoteDeadline = std::chrono::seconds(5);
constexpr std::size_t kMaxDemote = ipc::kMaxPayload - (1u << 20);  ///< bytes of all changes that a diff is asked about

std::int64_t nanos(Steady::time_point at) { return at.time_since_epoch() / std::chrono::nanoseconds(1); }

Error error_of(const ipc::CallResult& result) { return Error{result.code, result.message, result.retry_after_ms}; }

/// Decodes the answer of a call. Kills a worker whose answer is of another type: our own code never sends one.
template <class T>
Result<T> decode_answer(Supervisor& supervisor, const ipc::CallResult& result, const char* call) {
  auto answer = ipc::decode<T>(result.body);
  if (answer) return answer;
  const std::string what = fmt::format("sent an invalid answer to {}", call);
  supervisor.kill_misbehaving(what);
  return fail(Code::unavailable, fmt::format("worker {}: killed", what));
}

/// Collects the requested records from the pages of a read, each once. The handler owns it, so it outlives the call.
struct ReadResults {
  std::string backend;  // a source may also send records of other backends with the same ids
  std::set<core::ResourceId> missing;
  std::vector<core::Observation> records;
  std::vector<core::Diagnostic> diagnostics;
};
Task<Status> collect(std::shared_ptr<ReadResults> to, core::RecordPage page) {
  for (auto& record : page.records) {
    // a source's registration of that backend
    const bool registration = record.id.kind == core::kRegistration && record.backend == record.id.id;
    const bool own = record.backend.empty() || record.backend == to->backend || registration;
    if (own && !record.tombstone && to->missing.erase(record.id) > 0) to->records.push_back(std::move(record));
  }
  const auto own = [&](const auto& d) { return d.backend.empty() || d.backend == to->backend; };
  std::copy_if(page.diagnostics.begin(), page.diagnostics.end(), std::back_inserter(to->diagnostics), own);
  co_return Status{};
}

/// Keeps only what was requested. If a resource was both found and reported as not found, it stays found and the
/// report stays a diagnostic.
core::ReadOutcome to_read_outcome(ReadResults collected) {
  core::ReadOutcome out;
  out.found = std::move(collected.records);
  std::set<core::ResourceId> gone;
  for (auto& diagnostic : collected.diagnostics) {
    const core::ResourceId id{diagnostic.kind, diagnostic.id};
    if (diagnostic.code == Code::not_found && collected.missing.contains(id)) {
      if (gone.insert(id).second) out.not_found.push_back(id);
    } else {
      out.diagnostics.push_back(std::move(diagnostic));
    }
  }
  return out;
}

/// Removes the identities that stand for a record without a usable id. The provider does not know them, so its "not
/// found" would prove nothing.
std::vector<core::Diagnostic> remove_stand_ins(std::vector<core::ResourceId>& ids) {
  std::vector<core::Diagnostic> out;
  for (const auto& id : ids) {
    if (!core::is_stand_in(id)) continue;
    core::Diagnostic& why = out.emplace_back();
    why.code = Code::unsupported;
    why.kind = id.kind;
    why.id = id.id;
    why.text =
        "stands for a record whose own id cannot be used, so no read can find it; the next complete list shows whether "
        "it exists";
  }
  std::erase_if(ids, core::is_stand_in);
  return out;
}

/// Holds back pages that contain only diagnostics until it is known that the worker saw the current files.
struct DiagnosticBuffer {
  core::PageHandler to;
  std::vector<core::RecordPage> held;
  bool forwarded = false;
};
constexpr std::size_t kMaxHeldPages = 16;
Task<Status> forward_held(std::shared_ptr<DiagnosticBuffer> all) {
  const auto held = std::exchange(all->held, {});
  for (auto page : held) {
    if (all->to) DRIFTD_CO_CHECK(co_await all->to(std::move(page)));
  }
  co_return Status{};
}
Task<Status> hold_or_forward(std::shared_ptr<DiagnosticBuffer> all, core::RecordPage page) {
  const bool only_complains = !page.diagnostics.empty() && page.records.empty() && page.marks.empty();
  if (only_complains && !all->forwarded && all->held.size() < kMaxHeldPages) {
    all->held.push_back(std::move(page));
    co_return Status{};
  }
  all->forwarded = true;
  DRIFTD_CO_CHECK(co_await forward_held(all));
  if (!all->to) co_return Status{};
  const Status taken = co_await all->to(std::move(page));
  co_return taken;
}

}  // namespace

Task<Result<std::shared_ptr<const core::ProviderInfo>>> SupervisedSession::info() {
  const auto self = shared_from_this();
  for (;;) {
    const auto supervisor = supervisor_;
    if (!supervisor && stopping_) co_return fail(Code::cancelled, "the session is stopped");
    if (!supervisor && request_rescan_) request_rescan_();
    if (!supervisor) co_return fail(missing_ ? *missing_ : Error{Code::unavailable, "there is no plugin"});
    auto info = co_await Supervisor::info(supervisor);
    if (info || supervisor == supervisor_ || stopping_) co_return info;
  }
}

Task<Result<SupervisedSession::CallAnswer>> SupervisedSession::ask(ipc::FrameType type, std::string payload,
                                                                   Steady::time_point deadline,
                                                                   core::PageHandler on_page) {
  const auto self = shared_from_this();  // the call may outlive its caller's reference to the session
  for (bool again = false;; again = true) {
    const auto buffer = std::make_shared<DiagnosticBuffer>(DiagnosticBuffer{on_page, {}, false});
    const core::PageHandler handler = [buffer](core::RecordPage page) {
      return hold_or_forward(buffer, std::move(page));
    };
    DRIFTD_CO_TRY(const auto supervisor, co_await ready(deadline));
    const auto call = supervisor->begin(type, payload, deadline);
    auto result = co_await run_call(supervisor, call, handler);
    std::optional<Error> left;
    if (result && result->code != Code::ok) {
      Error error = error_of(*result);
      left = co_await Supervisor::check_replaced_paths(supervisor, std::move(error));
      if (left && !again && !buffer->forwarded) continue;
    }
    DRIFTD_CO_CHECK(co_await forward_held(buffer));
    if (left) co_return fail(*left);
    if (!result) co_return fail(result.error());
    co_return CallAnswer{supervisor, std::move(*result)};
  }
}

Task<Result<core::RefreshOutcome>> SupervisedSession::refresh(core::RefreshRequest request, core::PageHandler on_page) {
  const auto budget = spec_.budgets.call;
  const bool shorter = request.deadline.count() > 0 && request.deadline < budget;
  const auto deadline = Steady::now() + (shorter ? request.deadline : budget);
  const std::string asked = encode(
      ipc::RefreshCall{nanos(deadline), request.full, request.cursor, request.kinds, request.digests, request.whole});
  DRIFTD_CO_TRY(const CallAnswer answered, co_await ask(ipc::FrameType::refresh, asked, deadline, std::move(on_page)));
  const auto& supervisor = answered.supervisor;
  const ipc::CallResult& result = answered.result;
  const bool serves = supervisor == supervisor_;
  if (serves && result.code == Code::ok) fallback_.reset();
  if (serves && up_ && result.code == Code::deadline) count_upgrade_failure("no answer in time: " + result.message);
  if (result.code != Code::ok) co_return fail(error_of(result));
  DRIFTD_CO_TRY(const ipc::RefreshAnswer answer, decode_answer<ipc::RefreshAnswer>(*supervisor, result, "refresh"));
  co_return core::RefreshOutcome{answer.unchanged, std::chrono::milliseconds(clean_wait(answer.next_ms))};
}

Task<Result<core::ReadOutcome>> SupervisedSession::read(std::vector<core::ResourceId> ids,
                                                        std::chrono::milliseconds deadline) {
  std::vector<core::Diagnostic> unasked = remove_stand_ins(ids);
  if (ids.empty()) co_return core::ReadOutcome{{}, {}, std::move(unasked)};
  const auto until = Steady::now() + (deadline.count() > 0 ? deadline : spec_.budgets.call);
  DRIFTD_CO_TRY(const auto supervisor, co_await ready(until));
  const auto call = supervisor->begin(ipc::FrameType::read, encode(ipc::ReadCall{nanos(until), ids}), until);
  call->asked = ids.size();
  const auto collected = std::make_shared<ReadResults>();
  collected->backend = supervisor->spec().backend;
  collected->missing.insert(ids.begin(), ids.end());
  const core::PageHandler handler = [collected](core::RecordPage page) { return collect(collected, std::move(page)); };
  DRIFTD_CO_TRY(const ipc::CallResult result, co_await run_call(supervisor, call, handler));
  core::ReadOutcome out = to_read_outcome(std::move(*collected));
  std::move(unasked.begin(), unasked.end(), std::back_inserter(out.diagnostics));
  // What was answered before a failure stays valid and the rest is unknown. Only an empty answer becomes the failure.
  if (result.code != Code::ok && out.found.empty() && out.not_found.empty()) co_return fail(error_of(result));
  if (result.code != Code::ok)
    out.diagnostics.push_back({result.code, {}, {}, {}, result.message, {}, result.retry_after_ms});
  co_return out;
}

Task<Result<core::HealthReport>> SupervisedSession::health() {
  const auto self = shared_from_this();
  const auto deadline = Steady::now() + kHealthDeadline;
  const std::string asked = encode(ipc::PlainCall{nanos(deadline), {}});
  for (bool again = false;; again = true) {
    DRIFTD_CO_TRY(const CallAnswer answered, co_await ask(ipc::FrameType::health, asked, deadline, kNoPages));
    if (answered.result.code != Code::ok) co_return fail(error_of(answered.result));
    DRIFTD_CO_TRY(core::HealthReport report,
                  decode_answer<core::HealthReport>(*answered.supervisor, answered.result, "health"));
    clean(report, answered.supervisor->scrubber());
    up_ = report.state == core::HealthReport::State::up;
    if (up_ || again) co_return report;
    Error unseen{Code::denied, report.reason};
    const auto left = co_await Supervisor::check_replaced_paths(answered.supervisor, std::move(unseen));
    if (!left) co_return report;
  }
}

Task<Status> SupervisedSession::watch(std::string cursor, core::PageHandler on_page) {
  const auto self = shared_from_this();
  DRIFTD_CO_TRY(const auto supervisor, co_await ready(Steady::now() + spec_.budgets.call));
  constexpr auto kNever = Steady::time_point::max();
  const auto call = supervisor->begin(ipc::FrameType::watch, encode(ipc::PlainCall{nanos(kNever), cursor}), kNever);
  const auto outcome = co_await run_call(supervisor, call, on_page);
  if (supervisor != supervisor_ && !stopping_)
    co_return Status{};  // upgraded: the caller starts the watch again on the new version
  if (supervisor->paths_replaced() && !stopping_) co_return Status{};  // likewise if the next worker gets another jail
  if (!outcome) co_return fail(outcome.error());
  if (outcome->code != Code::ok) co_return fail(error_of(*outcome));
  co_return Status{};
}

Task<Result<std::vector<core::Demotion>>> SupervisedSession::demote(core::ResourceId id,
                                                                    std::vector<core::Change> changes) {
  ipc::DemoteCall asked{id, {}};
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {  // never a credential: a plugin must not see even its digest
    const auto& change = changes[i];
    if (change.redacted || change.cls == core::ChangeClass::credential) continue;
    const std::size_t more =
        change.path.size() + change.old_value.value_or("").size() + change.new_value.value_or("").size() + 64;
    if (bytes + more > kMaxDemote) continue;  // a request that is too large fails, and would settle none of them
    bytes += more;
    asked.changes.push_back(
        {static_cast<std::uint32_t>(i), change.path, change.old_value.value_or(""), change.new_value.value_or("")});
  }
  if (asked.changes.empty()) co_return std::vector<core::Demotion>{};
  const auto deadline = Steady::now() + kDemoteDeadline;
  DRIFTD_CO_TRY(const auto supervisor, co_await ready(deadline));
  if (!supervisor->demote_supported) co_return std::vector<core::Demotion>{};
  const auto call = supervisor->begin(ipc::FrameType::demote, encode(asked), deadline);
  DRIFTD_CO_TRY(const ipc::CallResult result, co_await run_call(supervisor, call, kNoPages));
  if (result.code == Code::unsupported) {
    supervisor->demote_supported = false;
    co_return std::vector<core::Demotion>{};
  }
  if (result.code != Code::ok) co_return fail(error_of(result));
  DRIFTD_CO_TRY(auto demotions, decode_answer<std::vector<core::Demotion>>(*supervisor, result, "diff"));
  std::set<std::size_t> allowed;
  for (const auto& change : asked.changes) allowed.insert(change.index);
  std::erase_if(demotions, [&](const core::Demotion& d) { return !allowed.contains(d.index) || d.reason.empty(); });
  for (auto& d : demotions) d.reason = supervisor->scrubber().printable(d.reason, ipc::kMaxText);
  co_return demotions;
}

}  // namespace driftd::host
