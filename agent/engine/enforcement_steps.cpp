// SPDX-License-Identifier: Apache-2.0
#include "engine/enforcement_steps.hpp"

#include <algorithm>
#include <random>

#include "base/digest.hpp"
#include "base/log.hpp"
#include "core/enforce/plan.hpp"
#include "core/presentable_text.hpp"
#include "engine/context.hpp"
#include "engine/decision_binding.hpp"
#include "engine/enforcement_switch.hpp"
#include "engine/ledger.hpp"

namespace driftd::engine {
namespace {

using State = core::EnforcementState;
using core::HoldReason;

constexpr std::chrono::seconds kLookDeadline{30};
constexpr Nanos kRequeue = 10'000'000'000;  // where the provider gives no time
constexpr std::size_t kMaxCommands = 256;

std::string random_hex(int bytes) {
  std::random_device random;
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(random() & 0xff));
  return to_hex(out);
}

EnforcementTry held(HoldReason reason, std::string text) { return {{}, core::Hold{reason, std::move(text), {}}}; }

/// After these nothing of the call is in the system.
bool surely_not_done(Code code) {
  return code == Code::conflict || code == Code::not_found || code == Code::invalid || code == Code::denied ||
         code == Code::unauthenticated || code == Code::unsupported || code == Code::throttled;
}

/// How an operation ends whose call was turned down with nothing done.
State end_after(Code code) {
  if (code == Code::conflict) return State::conflict;
  return code == Code::not_found ? State::failed : State::refused;
}

core::ApplyRequest request_of(const core::Enforcement& operation, const core::Observation& seen, bool dry_run) {
  core::ApplyRequest out;
  out.id = operation.resource;
  out.expected_version = seen.version;
  out.idempotency_key = operation.key;
  out.changes = core::as_read(operation.changes, seen);
  out.dry_run = dry_run;
  return out;
}

void limit(std::vector<std::string>& commands) {
  if (commands.size() > kMaxCommands) commands.resize(kMaxCommands);
}

const core::Drift* find_drift(const core::StoredResource& stored, const std::string& id) {
  const auto found =
      std::find_if(stored.open.begin(), stored.open.end(), [&](const auto& drift) { return drift.id == id; });
  return found == stored.open.end() ? nullptr : &*found;
}

std::string with_code(const Error& error) { return std::string(render(error.code)) + ": " + error.message; }

}  // namespace

bool can_apply(const Ledger& ledger) { return ledger.info() != nullptr && ledger.info()->offers("driftd.apply"); }

EnforcementSteps::EnforcementSteps(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session)
    : context_(std::move(context)),
      ledger_(ledger),
      session_(session) {}

std::string EnforcementSteps::why_off() const {
  if (context_->enforcement == nullptr) return "this process does not put values back";
  return context_->enforcement->why_off();
}

Task<Result<std::optional<core::Observation>>> EnforcementSteps::read(core::ResourceId id) {
  const Moment began = Moment::of(context_->clock);
  std::vector<core::ResourceId> ids(1, id);
  DRIFTD_CO_TRY(auto answer, co_await session_.read(std::move(ids), kLookDeadline));
  for (auto& seen : answer.found) {
    if (seen.id != id || !seen.backend.empty()) continue;
    const Moment now = Moment::of(context_->clock);
    core::Observation out = seen;
    DRIFTD_CO_CHECK(co_await judge(std::move(seen), {now.wall, Moment::asked_at(out.observed_ns, began, now)}));
    co_return std::optional(std::move(out));
  }
  if (std::find(answer.not_found.begin(), answer.not_found.end(), id) != answer.not_found.end()) co_return std::nullopt;
  std::string why = "the provider answered nothing about it";
  if (!answer.diagnostics.empty()) why = answer.diagnostics.front().text;
  co_return fail(Code::unavailable, render(id) + " cannot be read: " + why);
}

/// Whatever is read is judged, so that drift and operation tell the same; an own write is recognised there.
Task<Status> EnforcementSteps::judge(core::Observation seen, Moment asked) {
  const Index::Entry* known = ledger_.index().find(seen.id);
  const std::uint32_t run = known != nullptr ? known->run : 0;
  std::vector<ResourceReading> one;
  core::ResourceId id = seen.id;
  one.push_back({std::move(id), core::Present{std::move(seen), {}}, asked.mono});
  CommitExtras none;
  const auto applied = co_await ledger_.apply(std::move(one), std::move(none), false, run, &session_);
  if (!applied) co_return fail(applied.error());
  co_return Status{};
}

Task<Result<EnforcementSteps::Fresh>> EnforcementSteps::look_again(core::Drift drift) {
  Fresh out;
  DRIFTD_CO_TRY(auto seen, co_await read(drift.resource));
  if (!seen) {
    co_return fail(Code::not_found, render(drift.resource) + " is gone; driftd does not create it again");
  }
  out.seen = std::move(*seen);
  std::vector<core::ResourceId> ids(1, drift.resource);
  DRIFTD_CO_TRY(auto rows, co_await context_->store.load(ledger_.row().uid, std::move(ids)));
  out.stored = std::move(rows.front());
  const core::Drift* now = find_drift(out.stored, drift.id);
  if (now == nullptr || now->digest != drift.digest || now->status != drift.status) {
    co_return fail(Code::conflict, "drift " + drift.id + " of " + render(drift.resource) +
                                       " moved or ended when it was read again; nothing was done");
  }
  DRIFTD_CO_TRY(out.plan, core::plan_enforcement(*now, *ledger_.schema(drift.resource.kind)));
  const auto schema = ledger_.schema(drift.resource.kind);
  const auto standing = core::standing_of(out.plan, out.seen, *schema, context_->keys.get());
  if (standing.standing != core::PlanStanding::found) {
    co_return fail(Code::conflict, "the values of drift " + drift.id + " are not there when it is read again" +
                                       (standing.text.empty() ? "" : " (" + standing.text + ")") +
                                       "; nothing was done");
  }
  co_return out;
}

core::Enforcement EnforcementSteps::make_operation(const core::Drift& drift, const Fresh& fresh,
                                                   core::EnforcementCause cause, const core::Asked& asked) const {
  core::Enforcement out;
  out.id = "op-" + random_hex(8);
  out.key = out.id;
  out.backend_uid = ledger_.row().uid;
  out.backend = ledger_.spec().name;
  out.resource = drift.resource;
  out.external_name = fresh.stored.external_name;
  out.drift_id = drift.id;
  out.digest = drift.digest;
  out.changes = fresh.plan;
  out.desired = core::presentable_text(fresh.stored.baseline.value_or("{}"));
  out.observed = core::presentable_text(fresh.stored.observed.value_or("{}"));
  out.provider = ledger_.info()->id;
  out.provider_version = ledger_.info()->version;
  out.api_version = out.provider + "/v" + std::to_string(ledger_.schema(drift.resource.kind)->revision());
  out.trace_id = random_hex(16);
  out.cause = cause;
  out.actor = asked.actor;
  out.reason = asked.reason;
  out.writer = core::writer_of(fresh.stored);
  out.planned_ns = out.updated_ns = context_->clock.wall();
  return out;
}

Task<std::string> EnforcementSteps::why_other_system() {
  const std::string accepted = ledger_.row().system_identity;
  if (accepted.empty()) co_return std::string();
  const auto probed = co_await session_.health();
  if (!probed) co_return "which system answers at the endpoint is not known: " + with_code(probed.error());
  if (probed->system_identity == accepted) co_return std::string();
  if (probed->system_identity.empty()) {
    co_return "the system at the endpoint does not say which one it is (accepted: " + accepted + ")" +
        (probed->reason.empty() ? std::string() : ": " + probed->reason);
  }
  co_return "another system answers at the endpoint (identity " + probed->system_identity + ", accepted " + accepted +
      ")";
}

/// Commits a step with its audit line. The log knows it once it is stored.
Task<Result<core::Enforcement>> EnforcementSteps::write(core::Enforcement operation, State state, std::string text) {
  operation = core::advanced(std::move(operation), state, std::move(text), context_->clock.wall());
  CommitExtras extras;
  extras.audit.push_back(enforcement_entry(context_->store_key, operation));
  extras.enforcements.push_back(operation);
  DRIFTD_CO_CHECK(co_await ledger_.commit_extras(std::move(extras)));
  if (!core::is_open(state)) {
    log::room("engine").info("{}: operation {} on {} ended: {}{}{}", ledger_.spec().name, operation.id,
                             render(operation.resource), core::render(state), operation.text.empty() ? "" : ": ",
                             operation.text);
  }
  co_return operation;
}

Task<Result<EnforcementTry>> EnforcementSteps::carry_out(core::Drift drift, core::EnforcementCause cause,
                                                         core::Asked asked, bool dry_run) {
  if (ledger_.enforcements().find_open(drift.resource) != nullptr) {
    co_return held(HoldReason::unresolved, "an operation on " + render(drift.resource) + " is under way");
  }
  auto fresh = co_await look_again(drift);
  if (!fresh) {
    const Code code = fresh.error().code;
    co_return held(code == Code::invalid ? HoldReason::refused : HoldReason::later, fresh.error().message);
  }
  core::Enforcement operation = make_operation(drift, *fresh, cause, asked);
  core::ApplyRequest rehearsal = request_of(operation, fresh->seen, true);
  const auto rehearsed = co_await session_.apply(std::move(rehearsal));
  const bool turned_down = !rehearsed && surely_not_done(rehearsed.error().code) &&
                           rehearsed.error().code != Code::throttled &&
                           end_after(rehearsed.error().code) == State::refused;
  if (!rehearsed && !turned_down) {
    co_return held(HoldReason::later, "dry run: " + with_code(rehearsed.error()));
  }
  if (rehearsed) {
    operation.commands = rehearsed->commands;
    operation.undo = rehearsed->undo;
    operation.text = rehearsed->text;
    limit(operation.commands);
    limit(operation.undo);
  }
  const bool accepted = rehearsed && rehearsed->result != core::ApplyOutcome::Result::failed;
  if (dry_run && !rehearsed) co_return held(HoldReason::refused, "dry run: " + with_code(rehearsed.error()));
  if (dry_run && !accepted) co_return held(HoldReason::refused, "dry run: " + rehearsed->text);
  if (dry_run) co_return EnforcementTry{std::move(operation), {}};
  if (!accepted) {
    std::string why = "dry run: " + (rehearsed ? rehearsed->text : with_code(rehearsed.error()));
    DRIFTD_CO_TRY(operation, co_await write(std::move(operation), State::refused, std::move(why)));
    co_return EnforcementTry{std::move(operation), {}};
  }
  if (rehearsed->result != core::ApplyOutcome::Result::success) {
    co_return held(HoldReason::later, "the system asks for patience: " + rehearsed->text);
  }
  auto planned = co_await write_plan(operation, std::move(fresh->stored), std::move(asked));
  if (!planned && planned.error().code == Code::conflict) {
    co_return held(HoldReason::later, "drift " + drift.id + " was decided or moved meanwhile; nothing was done");
  }
  if (!planned) co_return fail(planned.error());
  operation = std::move(*planned);
  if (const std::string off = why_off(); !off.empty()) {
    std::string why = "nothing was written: " + off;
    DRIFTD_CO_TRY(operation, co_await write(std::move(operation), State::failed, std::move(why)));
    co_return EnforcementTry{std::move(operation), {}};
  }
  const std::string id = operation.id;
  DRIFTD_CO_TRY(operation, co_await apply(std::move(operation), std::move(fresh->seen)));
  const core::Enforcement* last = ledger_.enforcements().find(id);
  co_return EnforcementTry{last != nullptr ? *last : operation, {}};
}

Task<Result<core::Enforcement>> EnforcementSteps::write_plan(core::Enforcement operation, core::StoredResource row,
                                                             core::Asked asked) {
  CommitExtras extras;
  extras.binds = true;
  extras.audit.push_back(enforcement_entry(context_->store_key, operation));
  extras.audit.back().caller = asked.caller;
  extras.enforcements.push_back(operation);
  core::Judgement same;
  same.next = row;
  std::string cause = "operation " + operation.id;
  DRIFTD_CO_CHECK(co_await ledger_.commit(std::move(row), std::move(same), std::move(cause), std::move(extras)));
  co_return operation;
}

Task<Result<core::Enforcement>> EnforcementSteps::apply(core::Enforcement operation, core::Observation seen) {
  ++operation.attempts;
  std::string none;
  DRIFTD_CO_TRY(operation, co_await write(std::move(operation), State::applying, std::move(none)));
  if (const std::string off = why_off(); !off.empty()) {  // it came while the step was committed
    std::string why = "nothing was written: " + off;
    auto stopped = co_await write(std::move(operation), State::failed, std::move(why));
    co_return stopped;
  }
  const std::string other = co_await why_other_system();
  if (!other.empty()) {
    std::string why = "nothing was written: " + other;
    auto stopped = co_await write(std::move(operation), State::conflict, std::move(why));
    co_return stopped;
  }
  core::ApplyRequest request = request_of(operation, seen, false);
  auto answer = co_await session_.apply(std::move(request));
  if (answer) {
    auto taken = co_await take_answer(std::move(operation), std::move(*answer));
    co_return taken;
  }
  const Code code = answer.error().code;
  if (code == Code::throttled) {
    core::ApplyOutcome later;
    later.result = core::ApplyOutcome::Result::requeue;
    later.text = answer.error().message;
    auto taken = co_await take_answer(std::move(operation), std::move(later));
    co_return taken;
  }
  if (surely_not_done(code)) {
    std::string why = with_code(answer.error());
    auto ended = co_await write(std::move(operation), end_after(code), std::move(why));
    co_return ended;
  }
  // Nobody knows whether the system was changed; a reading does.
  operation.text = with_code(answer.error());
  DRIFTD_CO_CHECK(co_await settle(operation));
  co_return operation;
}

Task<Result<core::Enforcement>> EnforcementSteps::take_answer(core::Enforcement operation, core::ApplyOutcome answer) {
  using Result = core::ApplyOutcome::Result;
  if (!answer.commands.empty()) operation.commands = std::move(answer.commands);
  if (!answer.undo.empty()) operation.undo = std::move(answer.undo);
  limit(operation.commands);
  limit(operation.undo);
  if (answer.result == Result::failed && answer.left.empty()) {
    auto ended = co_await write(std::move(operation), State::refused, std::move(answer.text));
    co_return ended;
  }
  if (answer.result == Result::failed) {
    operation.state = State::applied;  // a part of it is set, which the reading finds
    operation.text = std::move(answer.text);
    DRIFTD_CO_CHECK(co_await settle(operation));
    co_return operation;
  }
  if (answer.result != Result::success) {
    operation = core::advanced(std::move(operation), State::applying, std::move(answer.text), context_->clock.wall());
    const Nanos wait = answer.result == Result::requeue ? kRequeue : Nanos{answer.requeue_after.count()} * 1'000'000;
    operation.retry_ns = context_->clock.wall() + wait;
    operation.accepted = operation.accepted || answer.result == Result::requeue_after;
    CommitExtras extras;
    extras.audit.push_back(enforcement_entry(context_->store_key, operation));
    extras.enforcements.push_back(operation);
    DRIFTD_CO_CHECK(co_await ledger_.commit_extras(std::move(extras)));
    co_return operation;
  }
  DRIFTD_CO_TRY(operation, co_await write(std::move(operation), State::applied, std::move(answer.text)));
  DRIFTD_CO_CHECK(co_await settle(operation));
  co_return operation;
}

}  // namespace driftd::engine
