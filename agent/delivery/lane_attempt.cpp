// SPDX-License-Identifier: Apache-2.0
// Sending, and what becomes of an attempt.

#include "base/log.hpp"
#include "base/fatal.hpp"
#include "delivery/lane.hpp"

namespace driftd::delivery {
namespace {

constexpr int kFailuresInRow = 5;           // of one endpoint, on
constexpr std::size_t kFailingKeys = 3;     // different keys: it is not about the events
constexpr Millis kSaveSoon{100};
constexpr std::size_t kErrorLength = 512;

std::string_view render(core::Attempt::Outcome outcome) {
  switch (outcome) {
    case core::Attempt::Outcome::delivered: return "delivered";
    case core::Attempt::Outcome::retry_event: return "retry_event";
    case core::Attempt::Outcome::retry_sink: return "retry_sink";
    case core::Attempt::Outcome::permanent: return "permanent";
    case core::Attempt::Outcome::disabled: return "disabled";
  }
  return "?";
}

}  // namespace

void Lane::send_ready() {
  while (opened_ && may_send()) {
    Window::Entry* entry = window_.take(now());
    if (entry == nullptr) return;
    if (replaying_.count(entry->event.key) != 0) {  // its replay is in flight: the next ring comes when that ends
      window_.retry(entry->event.stamp.seq, now(), entry->error, false);
      return;
    }
    asio::co_spawn(context_->core, deliver(entry->event), fatal);
  }
}

Task<void> Lane::deliver(core::StoredEvent event) {
  const auto self = shared_from_this();
  const core::Attempt attempt = co_await sink_->send(event);
  if (!window_.dirty()) next_save_ = now() + kSaveSoon;
  judge(event, attempt);
  rung_ = true;
  bell_.cancel();
}

void Lane::judge(const core::StoredEvent& event, const core::Attempt& attempt) {
  using Outcome = core::Attempt::Outcome;
  count(event, attempt);
  if (attempt.outcome != Outcome::delivered) last_error_ = attempt.detail.substr(0, kErrorLength);
  switch (attempt.outcome) {
    case Outcome::delivered:
      window_.settle(event.stamp.seq);
      unflushed_ = true;
      ++delivered_;
      endpoint_alive();
      break;
    case Outcome::retry_event: failed(event, attempt); break;
    case Outcome::retry_sink:
      window_.retry(event.stamp.seq, now(), attempt.detail, false);
      endpoint_failed(attempt);
      break;
    case Outcome::permanent:
      bury(event, window_.find(event.stamp.seq)->attempts + 1, attempt.detail);
      endpoint_alive();
      break;
    case Outcome::disabled:
      window_.retry(event.stamp.seq, now(), attempt.detail, false);
      disable("the receiver asked not to be called again (" + attempt.detail + ")");
      break;
  }
}

void Lane::failed(const core::StoredEvent& event, const core::Attempt& attempt) {
  const int attempts = window_.find(event.stamp.seq)->attempts + 1;
  const auto wait = schedule_.wait_after(attempts, attempt.retry_after_ms);
  if (wait) {
    window_.retry(event.stamp.seq, now() + *wait, attempt.detail, true);
  } else {
    bury(event, attempts, attempt.detail);
  }
  if (policy_.forever) return endpoint_alive();
  ++failures_in_row_;
  failing_keys_.insert(event.key);
  const bool spread = failures_in_row_ >= kFailuresInRow && failing_keys_.size() >= kFailingKeys;
  if (spread || circuit_.state() == Circuit::State::half_open) endpoint_failed({attempt.outcome, attempt.detail, 0});
}

void Lane::endpoint_failed(const core::Attempt& attempt) {
  const auto before = circuit_.state();
  circuit_.trip(now(), attempt.retry_after_ms);
  checked_ = false;
  last_error_ = attempt.detail.substr(0, kErrorLength);
  if (before == Circuit::State::closed) log::room("delivery").warn("sink {}: {}; circuit open", name_, last_error_);
  const Nanos wall = context_->clock.wall();
  if (!failing_since_) {
    failing_since_ = wall;
    notes_["failing_since_ns"] = std::to_string(wall);
  }
  const auto limit = std::chrono::duration_cast<std::chrono::nanoseconds>(context_->settings.disable_after).count();
  if (!policy_.forever && wall - *failing_since_ >= limit) disable("nothing but failures for too long: " + last_error_);
}

void Lane::endpoint_alive() {
  if (circuit_.state() != Circuit::State::closed) {
    log::room("delivery").info("sink {}: circuit closed", name_);
  }
  // a success that was under way when the circuit opened says nothing of now
  if (circuit_.state() == Circuit::State::open) return;
  circuit_.close();
  failures_in_row_ = 0;
  failing_keys_.clear();
  if (failing_since_) notes_.erase("failing_since_ns");
  failing_since_.reset();
}

void Lane::count(const core::StoredEvent& event, const core::Attempt& attempt) {
  core::Metrics* metrics = context_->settings.metrics;
  if (metrics == nullptr) return;
  const std::chrono::nanoseconds age(context_->clock.wall() - event.stamp.recorded_ns);
  metrics->observe_delivery(name_, std::string(render(attempt.outcome)),
                            std::chrono::duration_cast<core::Metrics::Seconds>(age));
  metrics->queue("delivery:" + name_, window_.in_flight(), static_cast<std::uint64_t>(policy_.max_in_flight));
}

void Lane::bury(const core::StoredEvent& event, int attempts, const std::string& error) {
  const std::string brief = error.substr(0, kErrorLength);
  window_.bury(event.stamp.seq, brief);
  log::room("delivery").error("sink {}: event {} is a dead letter after {} attempts: {}", name_, event.stamp.id,
                              attempts, brief);
  if (event.agent_event) return;  // two broken sinks must not tell each other of their dead letters for ever
  tell("dead_letter", "sink " + name_ + " could not deliver event " + event.stamp.id + ": " + brief,
       {{"sink", name_},
        {"event_id", event.stamp.id},
        {"seq", std::to_string(event.stamp.seq)},
        {"backend", event.backend},
        {"attempts", std::to_string(attempts)},
        {"error", brief}});
}

void Lane::disable(const std::string& why) {
  if (disabled_) return;
  disabled_ = true;
  last_error_ = why;
  log::room("delivery").error("sink {} is disabled: {}; its events are kept, a restart of the agent tries again", name_,
                              why);
  tell("parked", "sink " + name_ + " is disabled: " + why, {{"sink", name_}, {"reason", why}});
}

void Lane::tell(std::string what, std::string message, std::map<std::string, std::string> details) {
  core::AgentEvent event;
  event.agent = context_->settings.agent;
  event.cluster = context_->settings.cluster;
  event.what = std::move(what);
  event.message = std::move(message);
  if (details.count("backend") != 0) event.backend = details["backend"];
  event.details = std::move(details);
  event.at_ns = context_->clock.wall();
  ++telling_;
  asio::co_spawn(context_->core, append(std::move(event)), fatal);
}

Task<void> Lane::append(core::AgentEvent event) {
  const auto self = shared_from_this();
  core::EventDraft draft;
  if (context_->settings.routes) draft.sinks = context_->settings.routes(event);
  std::erase(draft.sinks, name_);
  const std::string what = event.what;
  draft.event = std::move(event);
  const auto stored = co_await context_->outbox.append(std::move(draft));
  --telling_;
  if (!stored) log::room("delivery").error("sink {}: no {} event: {}", name_, what, stored.error().message);
  context_->wake_all();
  ring();
}

}  // namespace driftd::delivery
