// SPDX-License-Identifier: Apache-2.0
#include "delivery/agenda.hpp"

#include <algorithm>

namespace driftd::delivery {
namespace {

using State = EndpointState;

/// Events that must be fetched again go first while there is room for them: in a long backlog, fresh events would
/// starve them.
std::optional<Duty> duty_of_live(const Situation& s) {
  if (!may_send(s)) return std::nullopt;
  const bool loaded = s.waiting.next_loaded && *s.waiting.next_loaded <= s.now;
  const bool unloaded = s.waiting.next_unloaded && *s.waiting.next_unloaded <= s.now;
  const bool bytes = s.waiting.loaded_bytes < 2 * kLoadedBytes;
  // events in flight make room when they are answered
  const bool room = loaded ? bytes && s.waiting.loaded < 2 * kLoaded : bytes || s.in_flight == 0;
  if (unloaded && room) return Duty::load;
  if (loaded) return Duty::send;
  return std::nullopt;
}

bool can_be_checked(State state) {
  return state == State::unchecked || state == State::half_open || state == State::ready;
}

std::optional<Duty> duty_of_sink(const Situation& s) {
  if (s.stopping) return std::nullopt;
  if (s.endpoint.state == State::not_started) return Duty::start;
  if (s.endpoint.state == State::unchecked) return Duty::check;
  if (can_be_checked(s.endpoint.state) && s.now >= s.endpoint.check_at) return Duty::check;
  return std::nullopt;
}

/// Events that wait behind a failing one do not stop the fetch for other keys: they have a limit of their own
/// (at_exception_limit). If only a fetch can make room for another send (`behind`), no other limit may prevent it.
bool must_fetch(const Situation& s) {
  if (s.store.fetching) return false;
  if (s.waiting.behind && !s.store.exhausted && !s.stopping && s.save.at_risk >= kMaxAtRisk) return true;
  if (s.store.exhausted || s.waiting.loaded >= kLoaded || s.waiting.loaded_bytes >= kLoadedBytes ||
      s.waiting.plain >= kWindow || s.save.unwritten >= kUnwritten || s.waiting.at_exception_limit)
    return false;
  return !s.stopping || may_send(s);
}

std::optional<Duty> duty_of_replay(const Situation& s) {
  if (s.stopping) return std::nullopt;
  if (s.replay.unplanned) return Duty::plan_replay;
  if (s.replay.unfetched && s.replay.ready < kReplaysAhead && s.replay.bytes < kLoadedBytes) return Duty::fetch_replay;
  if (s.replay.next && *s.replay.next <= s.now && may_send(s)) return Duty::send_replay;
  return std::nullopt;
}

bool must_save(const Situation& s) {
  if (!s.save.useful || s.save.saving) return false;
  return s.save.urgent || s.save.unsaved >= kSaveAt || s.save.unwritten >= kUnwritten || s.now >= s.save.at ||
         (s.stopping && s.in_flight == 0);
}

/// A stopping runner is done once nothing is in flight or its time is over. Events that wait for a time or for their
/// endpoint are left for the next start.
bool is_over(const Situation& s) {
  return s.stopping && ((s.in_flight == 0 && !s.store.fetching) || s.now >= s.drain_until);
}

/// The cursor may be moved back once nothing is under way that was begun at its present place.
bool may_rewind(const Situation& s) { return s.in_flight == 0 && !s.store.fetching && !s.save.saving; }

Agenda sleep(const Situation& s) {
  Agenda out{Duty::sleep, s.now + std::chrono::hours(24)};
  const auto sooner = [&out, &s](Time at) {
    if (at > s.now) out.until = std::min(out.until, at);
  };
  sooner(s.store.retry_at);
  sooner(s.drain_until);
  if (!s.store.opened || s.now < s.store.retry_at) return out;
  if (s.endpoint.state == State::circuit_open) sooner(s.endpoint.open_until);
  if (can_be_checked(s.endpoint.state)) sooner(s.endpoint.check_at);
  if (s.save.useful && !s.save.saving) sooner(s.save.at);
  if (may_send(s)) {
    if (s.waiting.next_loaded) sooner(*s.waiting.next_loaded);
    if (s.waiting.next_unloaded) sooner(*s.waiting.next_unloaded);
    if (s.replay.next) sooner(*s.replay.next);
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
  if (!s.store.opened || s.store.rewinding || s.save.at_risk >= kMaxAtRisk) return false;
  if (s.endpoint.state == State::half_open) return !s.stopping && s.in_flight == 0;
  return s.endpoint.state == State::ready && s.in_flight < s.endpoint.max_in_flight;
}

bool save_follows(const Situation& s) {
  return !s.stopping && s.store.opened && !s.store.rewinding && s.now >= s.store.retry_at && must_save(s);
}

Agenda next_duty(const Situation& s) {
  if (s.stopping && s.now >= s.drain_until) return {Duty::end, {}};
  if (s.now < s.store.retry_at) return is_over(s) ? Agenda{Duty::end, {}} : sleep(s);
  if (!s.store.opened) return {s.stopping ? Duty::end : Duty::open, {}};
  if (s.store.rewinding) return may_rewind(s) ? Agenda{Duty::rewind, {}} : sleep(s);
  if (const auto duty = duty_of_sink(s)) return {*duty, {}};
  if (must_fetch(s)) return {Duty::fetch, {}};
  if (const auto duty = duty_of_live(s)) return {*duty, {}};
  if (const auto duty = duty_of_replay(s)) return {*duty, {}};
  if (must_save(s)) return {Duty::save, {}};
  return is_over(s) ? Agenda{Duty::end, {}} : sleep(s);
}

}  // namespace driftd::delivery
