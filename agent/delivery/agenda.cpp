// SPDX-License-Identifier: Apache-2.0
#include "delivery/agenda.hpp"

#include <algorithm>

namespace driftd::delivery {
namespace {

using State = Circuit::State;

/// Events that must be fetched again go first while there is room for them: in a long backlog, fresh events would
/// starve them.
std::optional<Duty> duty_of_live(const Situation& s) {
  if (!may_send(s)) return std::nullopt;
  const bool loaded = s.next_loaded && *s.next_loaded <= s.now;
  const bool unloaded = s.next_unloaded && *s.next_unloaded <= s.now;
  const bool bytes = s.loaded_bytes < 2 * kLoadedBytes;
  // events in flight make room when they are answered
  const bool room = loaded ? bytes && s.loaded < 2 * kLoaded : bytes || s.flying == 0;
  if (unloaded && room) return Duty::load;
  if (loaded) return Duty::send;
  return std::nullopt;
}

std::optional<Duty> duty_of_sink(const Situation& s) {
  if (s.stopping || s.disabled || s.circuit == State::open) return std::nullopt;
  if (!s.started) return Duty::start;
  if (s.now >= s.check_at || s.must_check) return Duty::check;
  return std::nullopt;
}

/// Events that wait behind a failing one do not stop the fetch for other keys: they have a limit of their own
/// (at_exception_limit). If only a fetch can make room for another send (`behind`), no other limit may prevent it.
bool must_fetch(const Situation& s) {
  if (s.behind && !s.exhausted && !s.stopping && s.at_risk >= kMaxAtRisk) return true;
  if (s.exhausted || s.loaded >= kLoaded || s.loaded_bytes >= kLoadedBytes || s.plain >= kWindow ||
      s.unwritten >= kUnwritten || s.at_exception_limit)
    return false;
  return !s.stopping || may_send(s);
}

std::optional<Duty> duty_of_replay(const Situation& s) {
  if (s.stopping) return std::nullopt;
  if (s.replay_unplanned) return Duty::plan_replay;
  if (s.replay_unfetched && s.replay_ready < kReplaysAhead && s.replay_bytes < kLoadedBytes) return Duty::fetch_replay;
  if (s.replay_sendable && may_send(s) && s.now >= s.replay_at) return Duty::send_replay;
  return std::nullopt;
}

bool must_save(const Situation& s) {
  if (!s.worth_saving) return false;
  return s.save_now || s.unsaved >= kSaveAt || s.unwritten >= kUnwritten || s.now >= s.save_at ||
         (s.stopping && s.flying == 0);
}

/// A stopping runner is done once nothing is in flight or its time is over. Events that wait for a time or for their
/// endpoint are left for the next start.
bool is_over(const Situation& s) { return s.stopping && (s.flying == 0 || s.now >= s.drain_until); }

Agenda sleep(const Situation& s) {
  Agenda out{Duty::sleep, s.now + std::chrono::hours(24)};
  const auto sooner = [&out, &s](Time at) {
    if (at > s.now) out.until = std::min(out.until, at);
  };
  sooner(s.store_at);
  sooner(s.drain_until);
  if (!s.opened || s.now < s.store_at) return out;
  if (s.circuit == State::open && !s.disabled) sooner(s.open_until);
  if (s.started && !s.disabled && s.circuit != State::open) sooner(s.check_at);
  if (s.worth_saving) sooner(s.save_at);
  if (may_send(s)) {
    if (s.next_loaded) sooner(*s.next_loaded);
    if (s.next_unloaded) sooner(*s.next_unloaded);
    if (s.replay_sendable) sooner(s.replay_at);
  }
  return out;
}

}  // namespace

std::string_view render(Duty duty) {
  switch (duty) {
    case Duty::open:
      return "open the cursor";
    case Duty::rewind:
      return "move the cursor back";
    case Duty::start:
      return "start the sink";
    case Duty::check:
      return "check the receiver";
    case Duty::fetch:
      return "fetch events";
    case Duty::load:
      return "fetch events to try again";
    case Duty::send:
      return "send events";
    case Duty::plan_replay:
      return "plan a replay";
    case Duty::fetch_replay:
      return "fetch events to replay";
    case Duty::send_replay:
      return "replay events";
    case Duty::save:
      return "save the cursor";
    case Duty::sleep:
      return "sleep";
    case Duty::end:
      return "end";
  }
  return "?";
}

bool may_send(const Situation& s) {
  if (!s.opened || !s.started || s.disabled || s.rewinding || s.must_check || s.at_risk >= kMaxAtRisk) return false;
  if (s.circuit == State::half_open) return !s.stopping && s.flying == 0;
  return s.circuit == State::closed && s.flying < s.max_in_flight;
}

Agenda next_duty(const Situation& s) {
  if (s.stopping && s.now >= s.drain_until) return {Duty::end, {}};
  if (s.now < s.store_at) return is_over(s) ? Agenda{Duty::end, {}} : sleep(s);
  if (!s.opened) return {s.stopping ? Duty::end : Duty::open, {}};
  if (s.rewinding) return s.flying == 0 ? Agenda{Duty::rewind, {}} : sleep(s);
  if (const auto duty = duty_of_sink(s)) return {*duty, {}};
  if (must_fetch(s)) return {Duty::fetch, {}};
  if (const auto duty = duty_of_live(s)) return {*duty, {}};
  if (const auto duty = duty_of_replay(s)) return {*duty, {}};
  if (must_save(s)) return {Duty::save, {}};
  return is_over(s) ? Agenda{Duty::end, {}} : sleep(s);
}

}  // namespace driftd::delivery
