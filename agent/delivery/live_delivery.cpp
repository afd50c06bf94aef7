// SPDX-License-Identifier: Apache-2.0
#include "delivery/live_delivery.hpp"

#include "base/log.hpp"
#include "delivery/failure_text.hpp"
#include "delivery/progress_watch.hpp"
#include "delivery/sink_endpoint.hpp"

namespace driftd::delivery {

LiveDelivery::LiveDelivery(SinkRun& run, Cursor& cursor, SinkEndpoint& endpoint, ProgressWatch& progress, unsigned seed)
    : run_(run),
      cursor_(cursor),
      endpoint_(endpoint),
      progress_(progress),
      schedule_(run.policy, seed) {}

std::shared_ptr<const core::StoredEvent> LiveDelivery::take() {
  const Window::Entry* entry = cursor_.window().take(run_.now(), endpoint_.keys_to_avoid());
  if (entry == nullptr || entry->refusals == 0) return entry == nullptr ? nullptr : entry->event;
  auto event = std::make_shared<core::StoredEvent>(*entry->event);
  event->refusals = entry->refusals;
  return event;
}

Task<void> LiveDelivery::deliver(std::shared_ptr<const core::StoredEvent> event) {
  const core::Attempt attempt = co_await endpoint_.send(event);
  cursor_.save_soon();
  settle(*event, attempt);
}

int LiveDelivery::attempts_with(const core::StoredEvent& event) const {
  return cursor_.window().find(event.stamp.seq)->attempts + 1;
}

void LiveDelivery::settle(const core::StoredEvent& event, const core::Attempt& attempt) {
  using Outcome = core::Attempt::Outcome;
  Window& window = cursor_.window();
  switch (attempt.outcome) {
    case Outcome::delivered:
      window.settle(event.stamp.seq);
      progress_.progressed();
      endpoint_.delivered(event);
      break;
    case Outcome::retry_event:
      failed(event, attempt);
      break;
    case Outcome::refused:
      refused(event, attempt);
      break;
    case Outcome::retry_sink:
      window.requeue(event.stamp.seq, run_.now(), brief(attempt.detail));
      endpoint_.down(attempt);
      break;
    case Outcome::permanent:
      make_dead_letter(event, attempts_with(event), attempt.detail);
      endpoint_.alive(event.key);
      break;
    case Outcome::disabled:
      window.requeue(event.stamp.seq, run_.now(), brief(attempt.detail));
      endpoint_.disable("the receiver asked not to be called again (" + brief(attempt.detail) + ")");
      break;
  }
}

void LiveDelivery::failed(const core::StoredEvent& event, const core::Attempt& attempt) {
  run_.last_error = about(event, attempt.detail);
  if (attempt.content_refused) cursor_.window().count_refusal(event.stamp.seq);
  const int attempts = attempts_with(event);
  const auto wait = schedule_.wait_after(attempts, attempt.retry_after_ms);
  if (wait) {
    cursor_.window().postpone(event.stamp.seq, run_.now() + *wait, run_.last_error, true);
  } else {
    make_dead_letter(event, attempts, attempt.detail);
  }
  if (run_.policy.forever) return endpoint_.alive(event.key);
  endpoint_.event_failed(event.key);
}

/// Handles an answer that may be about this event or about all events; EndpointHealth decides which.
void LiveDelivery::refused(const core::StoredEvent& event, const core::Attempt& attempt) {
  using Blame = EndpointHealth::Blame;
  run_.last_error = about(event, attempt.detail);
  const std::string error = run_.last_error;  // the next line may replace it
  const std::int64_t seq = event.stamp.seq;
  const Blame blame = endpoint_.refused(event.key, attempt.retry_after_ms);
  if (blame == Blame::endpoint) return cursor_.window().requeue(seq, run_.now(), error);
  const int attempts = attempts_with(event);
  std::optional<Millis> wait = hold_after(run_.policy.forever, endpoint_.failures(event.key), attempt.retry_after_ms);
  const bool counts_attempt = blame == Blame::event;
  if (counts_attempt && !run_.policy.forever) wait = schedule_.wait_after(attempts, attempt.retry_after_ms);
  if (!wait) return make_dead_letter(event, attempts, attempt.detail);
  cursor_.window().postpone(seq, run_.now() + *wait, error, counts_attempt);
  if (!counts_attempt) endpoint_.count_outage();
}

void LiveDelivery::make_dead_letter(const core::StoredEvent& event, int attempts, const std::string& error) {
  const std::string reason = brief(error);
  run_.last_error = about(event, error);
  cursor_.window().dead_letter(event.stamp.seq, reason);
  progress_.progressed();
  log::room("delivery")
      .error("sink {}: event {} is a dead letter after {} attempts: {}", run_.name, event.stamp.id, attempts, reason);
  if (event.agent_event) return;  // two broken sinks must not report each other's dead letters for ever
  cursor_.publish("dead_letter", "sink " + run_.name + " could not deliver event " + event.stamp.id + ": " + reason,
                  {{"sink", run_.name},
                   {"event_id", event.stamp.id},
                   {"seq", std::to_string(event.stamp.seq)},
                   {"backend", event.backend},
                   {"attempts", std::to_string(attempts)},
                   {"error", reason}});
}

}  // namespace driftd::delivery
