// SPDX-License-Identifier: Apache-2.0
#include "delivery/sink_endpoint.hpp"

#include "base/log.hpp"
#include "delivery/failure_text.hpp"

namespace driftd::delivery {
namespace {

constexpr Millis kFirstFlushWait{250};
constexpr Millis kMostFlushWait{30'000};

using Outcome = core::Attempt::Outcome;

std::string_view render(Outcome outcome) {
  switch (outcome) {
    case Outcome::delivered:
      return "delivered";
    case Outcome::retry_event:
      return "retry_event";
    case Outcome::retry_sink:
      return "retry_sink";
    case Outcome::refused:
      return "refused";
    case Outcome::permanent:
      return "permanent";
    case Outcome::disabled:
      return "disabled";
  }
  return "?";
}

core::Attempt no_connection(const Error& error) { return {Outcome::retry_sink, error.message, error.retry_after_ms}; }

}  // namespace

SinkEndpoint::SinkEndpoint(SinkRun& run, Cursor& cursor, std::unique_ptr<core::Sink> sink, unsigned seed)
    : run_(run),
      cursor_(cursor),
      sink_(std::move(sink)),
      health_(run.policy.forever, seed),
      flush_waits_(kFirstFlushWait, kMostFlushWait, seed) {}

EndpointState SinkEndpoint::state(Time now) const {
  const Circuit::State circuit = health_.state(now);
  const bool half_open = circuit == Circuit::State::half_open;
  if (disabled_) return EndpointState::disabled;
  if (circuit == Circuit::State::open) return EndpointState::circuit_open;
  if (!started_) return EndpointState::not_started;
  if (sink_->must_check() || (half_open && !checked_)) return EndpointState::unchecked;
  return half_open ? EndpointState::half_open : EndpointState::ready;
}

EndpointSituation SinkEndpoint::situation(Time now) const {
  return {state(now), health_.open_until(), next_check_, static_cast<std::size_t>(run_.policy.max_in_flight)};
}

bool SinkEndpoint::fails() const { return !started_ || circuit() != Circuit::State::closed; }

std::string SinkEndpoint::describe() const {
  switch (state(run_.now())) {
    case EndpointState::disabled:
      return "disabled: " + why_ + "; nothing is sent until the agent restarts, its events are kept";
    case EndpointState::circuit_open:
      return "circuit open: " + why_ + "; next attempt at " + render_time(paused_until());
    default:
      return sink_->describe() + (circuit() == Circuit::State::closed ? "" : "; it is tried again after: " + why_);
  }
}

Nanos SinkEndpoint::paused_until() const {
  const Time now = run_.now();
  if (state(now) != EndpointState::circuit_open) return 0;
  return run_.wall() + std::chrono::duration_cast<std::chrono::nanoseconds>(health_.open_until() - now).count();
}

std::set<std::string> SinkEndpoint::keys_to_avoid() const {
  return circuit() == Circuit::State::half_open ? health_.failing() : std::set<std::string>();
}

Task<void> SinkEndpoint::start() {
  const Status started = co_await sink_->start();
  if (started) {
    started_ = true;
  } else {
    down(no_connection(started.error()));
  }
}

Task<void> SinkEndpoint::check() {
  const Millis every = run_.context->settings.check_every;
  next_check_ = run_.now() + every;
  checked_ = true;
  const auto from = co_await sink_->check(cursor_.notes());
  // counted from its end: checks that take long must not follow each other without a pause
  next_check_ = run_.now() + every;
  if (!from) {
    down(no_connection(from.error()));
  } else if (*from) {
    log::room("delivery")
        .warn("sink {}: the receiver lost what it had acknowledged; sending again after event {}", run_.name, **from);
    cursor_.rewind_to(**from);
  } else if (sink_->must_check()) {
    down({Outcome::retry_sink, "the connection changed during its check", 0});
  }
}

Task<core::Attempt> SinkEndpoint::send(std::shared_ptr<const core::StoredEvent> event) {
  const Nanos recorded_ns = event->stamp.recorded_ns;
  core::Attempt attempt = co_await sink_->send_shared(std::move(event));
  count(recorded_ns, attempt);
  co_return attempt;
}

Task<bool> SinkEndpoint::flush() {
  if (!std::exchange(unflushed_, false)) co_return true;
  const Status flushed = co_await sink_->flush();
  if (flushed) {
    flush_waits_.reset();
    co_return true;
  }
  cursor_.rewind_to(cursor_.window().low_water());
  down({Outcome::retry_sink, flushed.error().message, flush_waits_.next().count()});
  co_return false;
}

Task<void> SinkEndpoint::stop() {
  if (started_) co_await sink_->stop();
}

void SinkEndpoint::delivered(const core::StoredEvent& event) {
  unflushed_ = true;
  ++delivered_;
  static spdlog::logger& log = log::room("delivery");
  if (log.should_log(spdlog::level::debug)) {
    log.debug("sink {}: published event {} {}{}", run_.name, event.stamp.id, core::subject_of(event),
              event.replay ? " (replay)" : "");
  }
  alive(event.key);
}

void SinkEndpoint::alive(const std::string& key) {
  const auto before = circuit();
  const auto waiting = health_.alive(key, run_.now());
  if (before == Circuit::State::open) return;
  cursor_.window().rest(disabled_);
  if (before == Circuit::State::half_open) log::room("delivery").info("sink {}: circuit closed", run_.name);
  for (const auto& other : waiting) cursor_.window().make_due(other, run_.now());
  outage_.over(cursor_.notes());
}

void SinkEndpoint::down(const core::Attempt& attempt) {
  run_.last_error = brief(attempt.detail);
  const auto before = circuit();
  health_.down(run_.now(), attempt.retry_after_ms);
  circuit_opened(before);
}

void SinkEndpoint::event_failed(const std::string& key) {
  const auto before = circuit();
  if (health_.failed(key, run_.now())) circuit_opened(before);
}

EndpointHealth::Blame SinkEndpoint::refused(const std::string& key, std::int64_t retry_after_ms) {
  const auto before = circuit();
  const auto blame = health_.refused(key, run_.now(), retry_after_ms);
  if (blame == EndpointHealth::Blame::endpoint) circuit_opened(before);
  return blame;
}

void SinkEndpoint::circuit_opened(Circuit::State before) {
  checked_ = false;
  if (!disabled_) why_ = run_.last_error;
  cursor_.window().rest(true);
  if (before == Circuit::State::closed) {
    log::room("delivery").warn("sink {}: {}; circuit open", run_.name, run_.last_error);
  }
  count_outage();
}

void SinkEndpoint::count_outage() {
  outage_.failed(run_.now(), cursor_.notes());
  if (!run_.policy.forever && outage_.lasted() >= run_.context->settings.disable_after)
    disable("nothing but failures for too long: " + run_.last_error);
}

void SinkEndpoint::disable(const std::string& why) {
  if (disabled_) return;
  disabled_ = true;
  cursor_.window().rest(true);
  why_ = run_.last_error = why;
  log::room("delivery")
      .error("sink {} is disabled: {}; its events are kept, a restart of the agent tries again", run_.name, why);
  cursor_.publish("parked", "sink " + run_.name + " is disabled: " + why, {{"sink", run_.name}, {"reason", why}});
}

void SinkEndpoint::count(Nanos recorded_ns, const core::Attempt& attempt) {
  core::Metrics* metrics = run_.context->settings.metrics;
  if (metrics == nullptr) return;
  const std::chrono::nanoseconds age(run_.wall() - recorded_ns);
  metrics->observe_delivery(run_.name, std::string(render(attempt.outcome)),
                            std::chrono::duration_cast<core::Metrics::Seconds>(age));
  metrics->queue("delivery:" + run_.name, cursor_.window().in_flight(),
                 static_cast<std::uint64_t>(run_.policy.max_in_flight));
}

}  // namespace driftd::delivery
