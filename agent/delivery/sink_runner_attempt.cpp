// SPDX-License-Identifier: Apache-2.0
// Sending, and the outcome of an attempt.

#include "base/escape.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "delivery/sink_runner.hpp"

namespace driftd::delivery {
namespace {

constexpr Millis kSaveSoon{100};
constexpr std::size_t kErrorLength = 512;

std::string_view render(core::Attempt::Outcome outcome) {
  switch (outcome) {
    case core::Attempt::Outcome::delivered:
      return "delivered";
    case core::Attempt::Outcome::retry_event:
      return "retry_event";
    case core::Attempt::Outcome::retry_sink:
      return "retry_sink";
    case core::Attempt::Outcome::refused:
      return "refused";
    case core::Attempt::Outcome::permanent:
      return "permanent";
    case core::Attempt::Outcome::disabled:
      return "disabled";
  }
  return "?";
}

/// Returns a receiver's text shortened and escaped, fit for a log, a database and an event.
std::string brief(const std::string& error) { return escaped(error.substr(0, kErrorLength)); }

std::string about(const core::StoredEvent& event, const std::string& detail) {
  const std::string subject = event.resource.empty() ? event.backend : event.backend + "/" + event.resource;
  return brief(detail + " (event " + event.stamp.id + (subject.empty() ? "" : ", " + subject) + ")");
}

}  // namespace

void SinkRunner::send_ready() {
  static const std::set<std::string> kNone;
  while (may_send(situation())) {
    const bool probe = endpoint_.state(now()) == Circuit::State::half_open;
    const Window::Entry* entry = window_.take(now(), probe ? endpoint_.failing() : kNone);
    if (entry == nullptr) return;
    asio::co_spawn(context_->core, deliver(*entry->event), fatal);
  }
}

Task<void> SinkRunner::deliver(core::StoredEvent event) {
  const auto self = shared_from_this();
  const core::Attempt attempt = co_await sink_->send(event);
  if (!window_.worth_saving()) next_save_ = now() + kSaveSoon;
  count(event, attempt);
  settle_attempt(event, attempt);
  wake();
}

void SinkRunner::settle_attempt(const core::StoredEvent& event, const core::Attempt& attempt) {
  using Outcome = core::Attempt::Outcome;
  switch (attempt.outcome) {
    case Outcome::delivered:
      window_.settle(event.stamp.seq);
      unflushed_ = true;
      ++delivered_;
      progress();
      endpoint_alive(event.key);
      break;
    case Outcome::retry_event:
      failed(event, attempt);
      break;
    case Outcome::refused:
      refused(event, attempt);
      break;
    case Outcome::retry_sink:
      window_.requeue(event.stamp.seq, now(), brief(attempt.detail));
      endpoint_failed(attempt);
      break;
    case Outcome::permanent:
      make_dead_letter(event, window_.find(event.stamp.seq)->attempts + 1, attempt.detail);
      endpoint_alive(event.key);
      break;
    case Outcome::disabled:
      window_.requeue(event.stamp.seq, now(), brief(attempt.detail));
      disable("the receiver asked not to be called again (" + brief(attempt.detail) + ")");
      break;
  }
}

void SinkRunner::failed(const core::StoredEvent& event, const core::Attempt& attempt) {
  last_error_ = about(event, attempt.detail);
  const int attempts = window_.find(event.stamp.seq)->attempts + 1;
  const auto wait = schedule_.wait_after(attempts, attempt.retry_after_ms);
  if (wait) {
    window_.postpone(event.stamp.seq, now() + *wait, last_error_, true);
  } else {
    make_dead_letter(event, attempts, attempt.detail);
  }
  if (policy_.forever) return endpoint_alive(event.key);
  const auto before = endpoint_.state(now());
  if (endpoint_.failed(event.key, now())) circuit_opened(before);
}

/// Handles an answer that may be about this event or about all events; Endpoint decides which.
void SinkRunner::refused(const core::StoredEvent& event, const core::Attempt& attempt) {
  last_error_ = about(event, attempt.detail);
  const std::int64_t seq = event.stamp.seq;
  const auto before = endpoint_.state(now());
  const auto blame = endpoint_.refused(event.key, now(), attempt.retry_after_ms);
  if (blame == Endpoint::Blame::endpoint) {
    window_.requeue(seq, now(), last_error_);
    return circuit_opened(before);
  }
  const int attempts = window_.find(seq)->attempts + 1;
  std::optional<Millis> wait = hold_after(policy_.forever, endpoint_.failures(event.key), attempt.retry_after_ms);
  const bool counts_attempt = blame == Endpoint::Blame::event;
  if (counts_attempt && !policy_.forever) wait = schedule_.wait_after(attempts, attempt.retry_after_ms);
  if (!wait) return make_dead_letter(event, attempts, attempt.detail);
  window_.postpone(seq, now() + *wait, last_error_, counts_attempt);
  if (!counts_attempt) count_outage_or_disable();
}

void SinkRunner::endpoint_failed(const core::Attempt& attempt) {
  last_error_ = brief(attempt.detail);
  const auto before = endpoint_.state(now());
  endpoint_.down(now(), attempt.retry_after_ms);
  circuit_opened(before);
}

void SinkRunner::circuit_opened(Circuit::State before) {
  checked_ = false;
  if (before == Circuit::State::closed) log::room("delivery").warn("sink {}: {}; circuit open", name_, last_error_);
  count_outage_or_disable();
}

void SinkRunner::count_outage_or_disable() {
  outage_.failed(now(), notes_);
  if (!policy_.forever && outage_.lasted() >= context_->settings.disable_after)
    disable("nothing but failures for too long: " + last_error_);
}

void SinkRunner::endpoint_alive(const std::string& key) {
  const auto before = endpoint_.state(now());
  const auto waiting = endpoint_.alive(key, now());
  if (before == Circuit::State::open) return;
  if (before == Circuit::State::half_open) log::room("delivery").info("sink {}: circuit closed", name_);
  for (const auto& other : waiting) window_.make_due(other, now());
  outage_.over(notes_);
}

void SinkRunner::count(const core::StoredEvent& event, const core::Attempt& attempt) {
  core::Metrics* metrics = context_->settings.metrics;
  if (metrics == nullptr) return;
  const std::chrono::nanoseconds age(context_->clock.wall() - event.stamp.recorded_ns);
  metrics->observe_delivery(name_, std::string(render(attempt.outcome)),
                            std::chrono::duration_cast<core::Metrics::Seconds>(age));
  metrics->queue("delivery:" + name_, window_.in_flight(), static_cast<std::uint64_t>(policy_.max_in_flight));
}

void SinkRunner::make_dead_letter(const core::StoredEvent& event, int attempts, const std::string& error) {
  const std::string reason = brief(error);
  last_error_ = about(event, error);
  window_.dead_letter(event.stamp.seq, reason);
  progress();
  log::room("delivery")
      .error("sink {}: event {} is a dead letter after {} attempts: {}", name_, event.stamp.id, attempts, reason);
  if (event.agent_event) return;  // two broken sinks must not report each other's dead letters for ever
  publish_agent_event("dead_letter", "sink " + name_ + " could not deliver event " + event.stamp.id + ": " + reason,
                      {{"sink", name_},
                       {"event_id", event.stamp.id},
                       {"seq", std::to_string(event.stamp.seq)},
                       {"backend", event.backend},
                       {"attempts", std::to_string(attempts)},
                       {"error", reason}});
}

void SinkRunner::disable(const std::string& why) {
  if (disabled_) return;
  disabled_ = true;
  last_error_ = why;
  log::room("delivery")
      .error("sink {} is disabled: {}; its events are kept, a restart of the agent tries again", name_, why);
  publish_agent_event("parked", "sink " + name_ + " is disabled: " + why, {{"sink", name_}, {"reason", why}});
}

/// The next save stores the event together with the state that it reports, in one transaction, and is repeated until it
/// succeeds.
void SinkRunner::publish_agent_event(std::string what, std::string message,
                                     std::map<std::string, std::string> details) {
  core::AgentEvent event;
  event.agent = context_->settings.agent;
  event.cluster = context_->settings.cluster;
  event.what = std::move(what);
  event.message = std::move(message);
  if (details.count("backend") != 0) event.backend = details["backend"];
  event.details = std::move(details);
  event.at_ns = context_->clock.wall();
  core::EventDraft draft;
  if (context_->settings.routes) draft.sinks = context_->settings.routes(event);
  std::erase(draft.sinks, name_);
  draft.event = std::move(event);
  unsaved_agent_events_.push_back(std::move(draft));
  save_now_ = true;
}

}  // namespace driftd::delivery
