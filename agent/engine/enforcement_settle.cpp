// SPDX-License-Identifier: Apache-2.0
// How an operation ended, by a reading: after its write, and after a restart.
#include "core/enforce/plan.hpp"
#include "engine/context.hpp"
#include "engine/enforcement_steps.hpp"
#include "engine/ledger.hpp"

namespace driftd::engine {
namespace {

using State = core::EnforcementState;

constexpr Nanos kUnreadPatience = 600'000'000'000;  // a part of the resource that is not read may be read again

}  // namespace

Task<Status> EnforcementSteps::settle(core::Enforcement operation) {
  if (!ledger_.scope().wants(operation.resource)) {
    std::string out = "`include` and `exclude` leave the resource out, so nobody reads how it ended";
    const auto ended = co_await write(std::move(operation), State::unknown, std::move(out));
    if (!ended) co_return fail(ended.error());
    co_return Status{};
  }
  DRIFTD_CO_TRY(auto seen, co_await read(operation.resource));
  const core::Enforcement* still = ledger_.enforcements().find_open(operation.resource);
  if (still == nullptr || still->id != operation.id) co_return Status{};  // the drift ended as enforced, and so did it
  if (!seen) {
    std::string gone = "the resource is gone";
    const auto ended = co_await write(std::move(operation), State::failed, std::move(gone));
    if (!ended) co_return fail(ended.error());
    co_return Status{};
  }
  const auto schema = ledger_.schema(operation.resource.kind);
  auto standing = core::standing_of(operation.changes, *seen, *schema, context_->keys.get());
  if (standing.standing == core::PlanStanding::restored) {
    // its drift had ended before, or is still compared by the provider
    const State end = operation.state == State::planned ? State::failed : State::done;
    std::string there = "the values are there";
    const auto ended = co_await write(std::move(operation), end, std::move(there));
    if (!ended) co_return fail(ended.error());
    co_return Status{};
  }
  Status out;
  if (standing.standing == core::PlanStanding::found)
    out = co_await settle_found(std::move(operation), std::move(*seen));
  else
    out = co_await settle_mixed(std::move(operation), seen->version, std::move(standing));
  co_return out;
}

/// Nothing of the operation is in the system. If the write may not have been made, it is made again under the same key,
/// so that it happens at most once.
Task<Status> EnforcementSteps::settle_found(core::Enforcement operation, core::Observation seen) {
  const Nanos now = context_->clock.wall();
  std::string why;
  State end = State::failed;
  if (operation.state == State::planned) {
    why = "the agent ended before anything was written";
  } else if (operation.state == State::applied) {
    end = State::undone;
    why = "the provider answered that the values are set, and a reading does not show them";
  } else if (operation.retry_ns && *operation.retry_ns > now) {
    co_return Status{};
  } else if (const std::string off = why_off(); !off.empty()) {
    why = off;
  } else if (!ledger_.spec().enforce.allowed()) {
    why = "the configuration does not allow it any more";
  } else if (is_outside_window(operation)) {
    why = "no maintenance window is open any more";
  } else if (operation.attempts >= ledger_.spec().enforce.tries) {
    why = std::to_string(operation.attempts) + " tries did not set the values";
  } else {
    std::vector<core::ResourceId> ids(1, operation.resource);
    DRIFTD_CO_TRY(const auto rows, co_await context_->store.load(ledger_.row().uid, std::move(ids)));
    bool same = false;
    for (const auto& drift : rows.front().open) {
      // what is written comes from the drift, never from the stored operation
      const auto plan = core::plan_enforcement(drift, *ledger_.schema(operation.resource.kind));
      same = same ||
             (drift.id == operation.drift_id && drift.digest == operation.digest && plan && *plan == operation.changes);
    }
    if (same) {
      const auto again = co_await apply(std::move(operation), std::move(seen));
      if (!again) co_return fail(again.error());
      co_return Status{};
    }
    why = "its drift moved or ended";
  }
  if (!operation.text.empty()) why = operation.text + "; " + why;
  if (operation.accepted) {
    end = State::unknown;
    why += "; the system has accepted the values and may still apply them";
  }
  const auto ended = co_await write(std::move(operation), end, std::move(why));
  if (!ended) co_return fail(ended.error());
  co_return Status{};
}

/// A call that is made again is a write, too. A person does not wait for a window.
bool EnforcementSteps::is_outside_window(const core::Enforcement& operation) const {
  const auto& windows = ledger_.spec().enforce.windows;
  const Nanos now = context_->clock.wall();
  return operation.cause == core::EnforcementCause::policy && !windows.empty() &&
         !core::in_window(windows, now, core::local_offset(now));
}

Task<Status> EnforcementSteps::settle_mixed(core::Enforcement operation, std::string version,
                                            core::StandingReport standing) {
  std::string why = operation.text.empty() ? "" : operation.text + "; ";
  why += "a reading does not show the values that were put back: " + standing.text;
  State end = operation.state == State::applied ? State::undone : State::failed;
  if (operation.state == State::planned) {
    end = State::failed;
    why = "nothing was written, and the values moved: " + standing.text;
  } else if (standing.unread) {
    if (context_->clock.wall() < operation.updated_ns + kUnreadPatience) co_return Status{};
    end = State::unknown;
  } else if (!standing.restored.empty()) {
    std::vector<core::Change> back = core::reversed(std::move(standing.restored));
    const auto done = co_await roll_back(std::move(operation), std::move(back), std::move(version), std::move(why));
    co_return done;
  } else if (standing.text.empty() || operation.accepted) {
    end = State::unknown;
  }
  const auto ended = co_await write(std::move(operation), end, std::move(why));
  if (!ended) co_return fail(ended.error());
  co_return Status{};
}

/// Taking back is a write, too. Returns why none may be made; empty if it may.
std::string EnforcementSteps::why_not_back(const core::Enforcement& operation) const {
  if (std::string off = why_off(); !off.empty()) return off;
  const core::EnforceSettings& settings = ledger_.spec().enforce;
  if (!settings.allowed()) return "the configuration does not allow it any more";
  const bool tried = operation.attempts >= settings.tries;
  return tried ? std::to_string(operation.attempts) + " writes were made already" : std::string();
}

/// Takes back what is set. It is a write of its own with its own key, and only of paths and values of the plan.
Task<Status> EnforcementSteps::roll_back(core::Enforcement operation, std::vector<core::Change> back,
                                         std::string version, std::string why) {
  std::string not_back = why_not_back(operation);
  if (not_back.empty()) not_back = co_await why_other_system();
  if (not_back.empty()) {
    ++operation.attempts;
    std::string begun = why + "; taking it back";
    DRIFTD_CO_TRY(operation, co_await write(std::move(operation), State::applied, std::move(begun)));
    core::ApplyRequest request;
    request.id = operation.resource;
    request.expected_version = std::move(version);
    request.idempotency_key = operation.key + "-back-" + std::to_string(operation.attempts);
    request.changes = back;
    request.dry_run = false;
    const auto answer = co_await session_.apply(std::move(request));
    if (!answer) why += "; taking it back: " + std::string(render(answer.error().code)) + ": " + answer.error().message;
    if (answer && answer->result != core::ApplyOutcome::Result::success) why += "; taking it back: " + answer->text;
    DRIFTD_CO_TRY(auto seen, co_await read(operation.resource));
    const auto schema = ledger_.schema(operation.resource.kind);
    bool taken_back = false;
    if (seen) {
      const auto now = core::standing_of(operation.changes, *seen, *schema, context_->keys.get());
      taken_back =
          now.restored.empty() && !now.unread && (now.standing == core::PlanStanding::found || !now.text.empty());
    }
    const State end = taken_back ? State::rolled_back : State::rollback_failed;
    const auto ended = co_await write(std::move(operation), end, std::move(why));
    if (!ended) co_return fail(ended.error());
    co_return Status{};
  }
  why += "; it was not taken back: " + not_back;
  const auto ended = co_await write(std::move(operation), State::rollback_failed, std::move(why));
  if (!ended) co_return fail(ended.error());
  co_return Status{};
}

}  // namespace driftd::engine
