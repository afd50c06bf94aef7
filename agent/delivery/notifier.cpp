// SPDX-License-Identifier: Apache-2.0
#include "delivery/notifier.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>

#include "base/escape.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "core/value/value.hpp"
#include "delivery/approval_queue.hpp"

namespace driftd::delivery {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds kBetweenLooks{1};   // commits of a storm are looked at together
constexpr std::chrono::seconds kAtLeastEvery{60};  // a wall clock that was set is noticed
constexpr int kMaxDrifts = 200'000;
constexpr std::size_t kMaxMessage = 1'024;      // bytes of one drift
constexpr std::size_t kMaxDetails = 32u << 10;  // bytes of the list of drifts in an event

WaitingDrift waiting_of(const core::DriftRow& row, Nanos now, std::string ref) {
  const core::Drift& drift = row.drift;
  const Notification shown = make_notification(row, now);
  WaitingDrift out{drift.id,       drift.digest,       row.backend,   drift.resource.kind,
                   shown.resource, shown.change_class, std::move(ref)};
  out.message = core::shortened(shown.message, kMaxMessage);
  if (!shown.approvals.empty()) out.message += "\nApproved by " + shown.approvals + ".";
  if (!shown.claimed_by.empty()) out.message += "\nClaimed by " + shown.claimed_by + ".";
  out.opened_ns = drift.opened_ns;
  out.claimed = !shown.claimed_by.empty();
  for (const auto& action : shown.actions) out.actions += (out.actions.empty() ? "" : " ") + action;
  return out;
}

/// Returns the listed drifts as JSON, as many as have room.
std::string list_of(const Note& note) {
  std::string out = "[";
  for (const auto& drift : note.listed) {
    const std::string one = core::render(core::Value(core::Value::Object{{"id", core::Value(drift.id)},
                                                                         {"ref", core::Value(drift.ref)},
                                                                         {"backend", core::Value(drift.backend)},
                                                                         {"resource", core::Value(drift.resource)},
                                                                         {"class", core::Value(drift.cls)},
                                                                         {"message", core::Value(drift.message)},
                                                                         {"actions", core::Value(drift.actions)}}));
    if (out.size() + one.size() > kMaxDetails) break;
    out += (out.size() > 1 ? "," : "") + one;
  }
  return out + "]";
}

}  // namespace

Notifier::Notifier(NotifierNeeds needs, NotifySettings settings)
    : needs_(std::move(needs)),
      settings_(std::move(settings)),
      timer_(needs_.core) {}

void Notifier::start() {
  if (!settings_.on || std::exchange(running_, true)) return;
  asio::co_spawn(needs_.core, run(), fatal);
}

void Notifier::wake() {
  woken_ = true;
  timer_.cancel();
}

void Notifier::stop() {
  stopping_ = true;
  timer_.cancel();
}

Task<Result<NotifyInput>> Notifier::gather(Nanos now) {
  const auto backends = std::make_shared<std::map<std::string, NotifierNeeds::Backend>>(needs_.backends());
  DRIFTD_CO_TRY(auto silent, co_await needs_.store->silences(now));
  const auto out = std::make_shared<NotifyInput>();
  out->now_ns = now;
  for (const auto& [name, backend] : *backends) {
    if (backend.down) out->down.insert(name);
  }
  for (const auto& one : silent) {
    const bool sooner = out->silent_until_ns == 0 || one.expires_ns < out->silent_until_ns;
    if (sooner) out->silent_until_ns = one.expires_ns;
  }
  core::DriftFilter filter;
  filter.status = core::DriftStatus::pending;
  filter.limit = kMaxDrifts;
  const auto silences = std::make_shared<std::vector<core::Silence>>(std::move(silent));
  core::Reader::RowHandler<core::DriftRow> take = [out, backends, silences, now, ref = needs_.ref](core::DriftRow row) {
    const auto silenced = [&](const core::Silence& one) { return one.matches(row.backend, row.drift); };
    out->waiting.push_back(waiting_of(row, now, ref(row.drift)));
    out->waiting.back().silenced = std::any_of(silences->begin(), silences->end(), silenced);
    const auto found = backends->find(row.backend);
    if (found != backends->end()) out->waiting.back().labels = found->second.labels;
    return true;
  };
  DRIFTD_CO_TRY([[maybe_unused]] const bool ended,
                co_await needs_.reader->each_drift(std::move(filter), std::move(take)));
  co_return std::move(*out);
}

core::EventDraft Notifier::draft(const Note& note) const {
  core::AgentEvent event;
  event.agent = needs_.agent;
  event.cluster = needs_.cluster;
  event.what = note.kind == "escalation" ? "escalation" : "notification";
  event.backend = note.backend;
  event.message = note.message;
  event.details = {{"title", note.title},
                   {"kind", note.kind},
                   {"count", std::to_string(note.count)},
                   {"actions", note.count == 0 ? "" : "APPROVE REJECT IGNORE"},
                   {"drifts", list_of(note)},
                   {"remark", note.remark}};
  event.at_ns = needs_.clock->wall();
  core::EventDraft out;
  out.sinks = needs_.routes(event);
  out.event = std::move(event);
  return out;
}

Task<Status> Notifier::look() {
  const auto self = shared_from_this();
  last_look_ = needs_.clock->mono();
  if (!loaded_) {
    DRIFTD_CO_TRY(stored_, co_await needs_.store->notification_states());
    state_ = parse_states(stored_);
    loaded_ = true;
  }
  DRIFTD_CO_TRY(const NotifyInput input, co_await gather(needs_.clock->wall()));
  NotifyOutcome outcome = notify(settings_, state_, input);
  const auto states = render_states(outcome.next);
  core::NotificationStore::Write write;
  for (const auto& [name, text] : states) {
    const auto found = stored_.find(name);
    if (found == stored_.end() || found->second != text) write.states[name] = text;
  }
  for (const auto& [name, text] : stored_) {
    if (!states.contains(name)) write.states[name] = "";
  }
  for (const auto& note : outcome.notes) write.events.push_back(draft(note));
  const bool events = !write.events.empty();
  if (!write.states.empty() || events) DRIFTD_CO_CHECK(co_await needs_.store->write_notifications(std::move(write)));
  stored_ = states;
  state_ = std::move(outcome.next);
  next_ns_ = outcome.next_ns;
  if (events) needs_.stored();
  co_return Status{};
}

std::chrono::nanoseconds Notifier::wait_time() const {
  const nanoseconds since = needs_.clock->mono() - last_look_;
  const nanoseconds pause = std::max(nanoseconds(0), nanoseconds(kBetweenLooks) - since);
  if (woken_) return pause;
  nanoseconds out = kAtLeastEvery;
  if (next_ns_ != 0) out = std::min(out, nanoseconds(next_ns_ - needs_.clock->wall()));
  return std::max(out, pause);
}

Task<void> Notifier::run() {
  const auto self = shared_from_this();
  while (!stopping_) {
    const auto wait = wait_time();
    if (wait > nanoseconds(0)) {
      timer_.expires_after(wait);
      const auto [cancelled] = co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
      if (cancelled) continue;  // woken or stopped: how long to wait is decided again
    }
    if (stopping_) break;
    woken_ = false;
    const Status done = co_await look();
    if (done) continue;
    log::room("delivery").error("notifications: {}; trying again", done.error().message);
    woken_ = true;
  }
  running_ = false;
}

}  // namespace driftd::delivery
