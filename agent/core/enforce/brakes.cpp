// SPDX-License-Identifier: Apache-2.0
#include "core/enforce/brakes.hpp"

#include <algorithm>
#include <array>

#include "base/digest.hpp"
#include "core/judge/judge.hpp"

namespace driftd::core {
namespace {

constexpr Nanos kSecond = 1'000'000'000, kHour = 3'600 * kSecond;

Nanos nanos(std::chrono::seconds span) { return std::chrono::nanoseconds(span).count(); }

/// The operations of one resource that count: those that no person has forgiven.
std::vector<const Enforcement*> of_resource(const ResourceId& resource, const BrakeState& state) {
  std::vector<const Enforcement*> out;
  for (const auto& one : *state.history) {
    if (one.resource == resource && !one.forgiven) out.push_back(&one);
  }
  return out;
}

bool share_a_path(const std::vector<Change>& a, const std::vector<Change>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Change& one) {
    return std::any_of(b.begin(), b.end(), [&](const Change& other) { return one.path == other.path; });
  });
}

/// Operations that may have changed the system.
bool reached_the_system(const Enforcement& one) { return one.attempts > 0; }

using Brake = std::optional<Hold> (*)(const Candidate&, const EnforceSettings&, const BrakeState&);

std::optional<Hold> switched_off(const Candidate&, const EnforceSettings& settings, const BrakeState& state) {
  if (!state.off.empty()) return Hold{HoldReason::off, state.off, {}};
  if (!settings.allowed_globally)
    return Hold{HoldReason::not_allowed, "`enforce.enabled` of the configuration is not true", {}};
  if (settings.allowed_here) return std::nullopt;
  return Hold{HoldReason::not_allowed, "`enforce` of this backend in the configuration is not true", {}};
}

std::optional<Hold> stopped(const Candidate& candidate, const EnforceSettings&, const BrakeState& state) {
  for (const auto& stop : *state.stops) {
    if (!stop.stands() || stop.resource != candidate.drift.resource) continue;
    return Hold{HoldReason::stopped,
                "stopped by " + stop.actor + " at " + render_time(stop.at_ns) + ": " + stop.reason +
                    "; `driftd enforce resume " + candidate.drift.id + "` lifts it",
                {}};
  }
  return std::nullopt;
}

std::optional<Hold> unresolved(const Candidate& candidate, const EnforceSettings&, const BrakeState& state) {
  for (const Enforcement* one : of_resource(candidate.drift.resource, state)) {
    const bool open = is_open(one->state);
    const bool lost = one->state == EnforcementState::unknown || one->state == EnforcementState::rollback_failed;
    if (!open && !lost) continue;
    std::string text = "operation " + one->id + " is " + std::string(render(one->state));
    if (!one->text.empty()) text += ": " + one->text;
    if (lost) text += "; look at the resource, then `driftd enforce resume " + candidate.drift.id + "`";
    return Hold{HoldReason::unresolved, std::move(text), one->retry_ns};
  }
  return std::nullopt;
}

/// The same values were refused before, and nothing moved since: the same again would be refused again. A person may
/// ask again, because the refusal may have been about a right that was granted since.
std::optional<Hold> refused(const Candidate& candidate, const EnforceSettings&, const BrakeState& state) {
  if (candidate.cause == EnforcementCause::person) return std::nullopt;
  for (const Enforcement* one : of_resource(candidate.drift.resource, state)) {
    const bool final = one->state == EnforcementState::refused || one->state == EnforcementState::rolled_back;
    if (!final || one->drift_id != candidate.drift.id || one->digest != candidate.drift.digest) continue;
    return Hold{HoldReason::refused,
                "operation " + one->id + " is " + std::string(render(one->state)) + ": " + one->text +
                    "; it is not tried again by itself until the value moves or `driftd enforce resume " +
                    candidate.drift.id + "`",
                {}};
  }
  return std::nullopt;
}

std::optional<Hold> owned(const Candidate& candidate, const EnforceSettings& settings, const BrakeState&) {
  if (candidate.owner.empty() || candidate.owner == settings.owner) return std::nullopt;
  return Hold{HoldReason::owned,
              "the resource is marked driftd.io/owner=" + shortened(candidate.owner, 100) + ", and this driftd is " +
                  settings.owner,
              {}};
}

std::optional<Hold> too_young(const Candidate& candidate, const EnforceSettings& settings, const BrakeState& state) {
  if (candidate.cause == EnforcementCause::person) return std::nullopt;
  const Nanos ripe = candidate.drift.updated_ns + nanos(settings.minimum_age);
  if (state.now_ns >= ripe) return std::nullopt;
  return Hold{HoldReason::too_young,
              "the value stands since " + render_time(candidate.drift.updated_ns) + "; it is put back from " +
                  render_time(ripe) + " on",
              ripe};
}

std::optional<Hold> outside_window(const Candidate& candidate, const EnforceSettings& settings,
                                   const BrakeState& state) {
  if (candidate.cause == EnforcementCause::person || settings.windows.empty()) return std::nullopt;
  if (in_window(settings.windows, state.now_ns, state.local_offset)) return std::nullopt;
  const auto next = next_window(settings.windows, state.now_ns, state.local_offset);
  return Hold{HoldReason::window,
              "no maintenance window is open" + (next ? "; the next opens at " + render_time(*next) : std::string()),
              next};
}

std::optional<Hold> too_many_tries(const Candidate& candidate, const EnforceSettings& settings,
                                   const BrakeState& state) {
  int tries = 0;
  std::optional<Nanos> first;
  for (const Enforcement* one : of_resource(candidate.drift.resource, state)) {
    if (one->updated_ns <= state.now_ns - nanos(settings.tries_within)) continue;
    // a dry run that was refused is a try, too
    tries += std::max(one->attempts, 1);
    if (!first || one->updated_ns < *first) first = one->updated_ns;
  }
  if (tries < settings.tries) return std::nullopt;
  return Hold{HoldReason::tries,
              std::to_string(tries) + " tries on this resource in the last " +
                  std::to_string(settings.tries_within.count()) + " s, of " + std::to_string(settings.tries),
              *first + nanos(settings.tries_within)};
}

std::optional<Hold> too_many_in_cycle(const Candidate&, const EnforceSettings& settings, const BrakeState& state) {
  const auto count = std::count_if(state.history->begin(), state.history->end(), [&](const Enforcement& one) {
    return reached_the_system(one) && one.planned_ns >= state.cycle_began_ns;
  });
  if (count < settings.per_cycle) return std::nullopt;
  return Hold{HoldReason::cycle_limit,
              "this cycle has made " + std::to_string(count) + " of " + std::to_string(settings.per_cycle) +
                  " operations; it waits for the next",
              {}};
}

std::optional<Hold> too_many_in_hour(const Candidate&, const EnforceSettings& settings, const BrakeState& state) {
  std::vector<Nanos> made;
  for (const auto& one : *state.history) {
    if (reached_the_system(one) && one.planned_ns > state.now_ns - kHour) made.push_back(one.planned_ns);
  }
  if (static_cast<int>(made.size()) < settings.per_hour) return std::nullopt;
  std::sort(made.begin(), made.end());
  const Nanos free = made[made.size() - static_cast<std::size_t>(settings.per_hour)] + kHour;
  return Hold{HoldReason::hour_limit,
              "the last hour had " + std::to_string(made.size()) + " of " + std::to_string(settings.per_hour) +
                  " operations of this backend",
              free};
}

/// Returns true for an operation that is no canary any more: nothing of it reached the system (its own resource was
/// refused), a person has forgiven it, or it went wrong more than an hour ago, so that the next resource may try.
bool says_nothing_of_others(const Enforcement& one, Nanos now_ns) {
  if (is_open(one.state) || one.state == EnforcementState::done) return false;
  return one.attempts == 0 || one.forgiven || one.updated_ns < now_ns - kHour;
}

/// Where several resources want the same change, one gets it first, and the others once that was confirmed in an
/// earlier cycle. Only operations since the candidate's value stands count: a change that went well last week says
/// little.
std::optional<Hold> behind_canary(const Candidate& candidate, const EnforceSettings&, const BrakeState& state) {
  if (candidate.cause == EnforcementCause::person) return std::nullopt;
  const std::string key = canary_key(candidate.drift.resource, candidate.plan);
  const auto wanted = state.wanted->find(key);
  if (wanted == state.wanted->end() || wanted->second < 2) return std::nullopt;
  const Enforcement* canary = nullptr;
  for (const auto& one : *state.history) {
    if (one.planned_ns < candidate.drift.updated_ns || canary_key(one.resource, one.changes) != key) continue;
    if (says_nothing_of_others(one, state.now_ns)) continue;
    if (one.state == EnforcementState::done && one.planned_ns < state.cycle_began_ns) return std::nullopt;
    if (canary == nullptr || one.planned_ns > canary->planned_ns) canary = &one;
  }
  if (canary == nullptr || canary->resource == candidate.drift.resource) return std::nullopt;
  return Hold{HoldReason::canary,
              std::to_string(wanted->second) + " resources want the same change; " + render(canary->resource) +
                  " gets it first, and its operation " + canary->id + " is " + std::string(render(canary->state)) +
                  (canary->state == EnforcementState::done ? " in this cycle" : ""),
              {}};
}

constexpr std::array<Brake, 11> kBrakes{
    switched_off,   stopped,        unresolved,        refused,          owned,        too_young,
    outside_window, too_many_tries, too_many_in_cycle, too_many_in_hour, behind_canary};

}  // namespace

std::string_view render(HoldReason reason) {
  constexpr std::array<std::string_view, 13> kNames{"off",        "not_allowed", "stopped", "refused", "unresolved",
                                                    "owned",      "too_young",   "window",  "tries",   "cycle_limit",
                                                    "hour_limit", "canary",      "later"};
  return kNames.at(static_cast<std::size_t>(reason));
}

std::optional<Hold> hold_of(const Candidate& candidate, const EnforceSettings& settings, const BrakeState& state) {
  for (const Brake brake : kBrakes) {
    if (auto hold = brake(candidate, settings, state)) return hold;
  }
  return std::nullopt;
}

std::string canary_key(const ResourceId& resource, const std::vector<Change>& plan) {
  std::string out = std::to_string(resource.kind.size()) + ":" + resource.kind;
  for (const auto& change : plan) {
    const std::string value = change.new_value.value_or("");
    out += std::to_string(change.path.size()) + ":" + change.path + (change.new_value ? "=" : "-") +
           std::to_string(value.size()) + ":" + value;
  }
  return to_hex(sha256(out));
}

std::string fight_of(const Candidate& candidate, const EnforceSettings& settings, const BrakeState& state,
                     const std::string& us) {
  const Nanos since = state.now_ns - std::max(nanos(settings.rounds_within), 8 * nanos(settings.minimum_age));
  std::string ours;
  int rounds = 0;
  for (const Enforcement* one : of_resource(candidate.drift.resource, state)) {
    const bool written = one->state == EnforcementState::done || one->state == EnforcementState::undone;
    if (!written || one->planned_ns <= since || !share_a_path(one->changes, candidate.plan)) continue;
    ours += (rounds == 0 ? "" : ", ") + one->id;
    ++rounds;
  }
  if (rounds < settings.rounds) return {};
  const std::string& them = candidate.writer;
  return "two writers fight over it: " + us + " put it back " + std::to_string(rounds) + " times (" + ours + "), and " +
         (them.empty() ? "a writer that the system does not name" : them) + " changed it again each time, now " +
         render_changes(candidate.drift);
}

}  // namespace driftd::core
