// SPDX-License-Identifier: Apache-2.0
#include "delivery/replay_job.hpp"

#include "base/log.hpp"
#include "delivery/agenda.hpp"
#include "delivery/answer.hpp"
#include "delivery/failure_text.hpp"
#include "delivery/sink_endpoint.hpp"

namespace driftd::delivery {
namespace {

constexpr int kReplayPage = 512;
constexpr int kMaxAttempts = 5;  // for one replayed event, if the sink does not retry for ever

bool selected(const core::StoredEvent& event, const ReplayQueue::Order& order) {
  if (event.stamp.seq < order.from || event.stamp.recorded_ns < order.from_ns) return false;
  return order.key.empty() || event.key == order.key || event.backend + "/" + event.resource == order.key;
}

}  // namespace

ReplaySituation ReplayJob::situation() const {
  ReplaySituation out;
  out.unplanned = replay_.active() && !replay_.planned() && !planning_;
  out.unfetched = replay_.has_unfetched();
  out.ready = replay_.ready();
  out.bytes = replay_.bytes();
  out.next = replay_.next([this](const std::string& key) { return !cursor_.window().busy(key); });
  return out;
}

void ReplayJob::restore_notes() {
  if (!planning_ && cursor_.stored_note(ReplayQueue::kNote)) replay_.cancel();
  replay_.restore(cursor_.notes());
}

void ReplayJob::write_notes() {
  replay_.note(cursor_.notes());
  unsaved_ = false;
}

void ReplayJob::revert_notes() { cursor_.revert_note(ReplayQueue::kNote); }

Task<Result<std::int64_t>> ReplayJob::begin(core::Control::Replay request) {
  if (!cursor_.opened() || run_.stopping) {
    co_return fail(Code::unavailable, "sink " + run_.name + ": its cursor is not open" +
                                          (run_.last_error.empty() ? std::string() : " (" + run_.last_error + ")") +
                                          "; try again later");
  }
  if (planning_ || replay_.active()) {
    co_return fail(Code::conflict, "sink " + run_.name + ": a replay is under way; wait for its end");
  }
  planning_ = true;
  ReplayQueue::Order order{request.from_seq, cursor_.window().fetched_to(), request.from_ns, request.rate, request.key};
  auto count = co_await store_order(std::move(order), std::move(request.from_id));
  planning_ = false;
  end_if_finished();
  co_return count;
}

Task<Result<std::int64_t>> ReplayJob::store_order(ReplayQueue::Order order, std::string from_id) {
  ReplayQueue::Order asked = order;
  DRIFTD_CO_TRY(auto seqs, co_await plan(std::move(asked), std::move(from_id)));
  const auto count = static_cast<std::int64_t>(seqs.size());
  if (seqs.empty()) co_return count;
  order.from = seqs.front();
  const auto failures = cursor_.failed_saves(), openings = cursor_.openings();
  replay_.begin(std::move(order), std::move(seqs));
  unsaved_ = true;
  cursor_.save_now();
  run_.wake();
  const auto begun_anew = [&] { return cursor_.openings() != openings; };  // what was sent may be lost unflushed
  while (begun_anew() || (!cursor_.stored_note(ReplayQueue::kNote) && replay_.active())) {
    if (begun_anew() || cursor_.failed_saves() != failures || run_.stopping) {
      replay_.cancel();
      unsaved_ = true;
      co_return fail(Code::unavailable, "sink " + run_.name + ": the replay could not be stored (" + run_.last_error +
                                            "); nothing more is sent again");
    }
    co_await cursor_.wait_for_save();
  }
  co_return count;
}

Task<Result<std::vector<std::int64_t>>> ReplayJob::plan(ReplayQueue::Order order, std::string from_id) {
  std::int64_t after = std::max<std::int64_t>(0, order.from - 1);
  bool reached = from_id.empty();
  std::vector<std::int64_t> seqs;
  while (after < order.to) {
    DRIFTD_CO_TRY(const auto page, co_await run_.context->outbox.fetch(run_.name, after, kReplayPage));
    if (run_.stopping) co_return fail(Code::cancelled, "the agent stops");
    if (page.empty()) break;
    for (const auto& event : page) {
      after = event.stamp.seq;
      reached = reached || event.stamp.id == from_id;
      const bool live = cursor_.window().find(after) != nullptr || after > order.to;
      if (reached && !live && selected(event, order)) seqs.push_back(after);
    }
  }
  if (!reached) co_return fail(Code::not_found, "sink " + run_.name + " never had an event " + from_id);
  co_return seqs;
}

Task<void> ReplayJob::resume() {
  ReplayQueue::Order order = *replay_.order();
  std::string from_start;
  auto seqs = co_await plan(std::move(order), std::move(from_start));
  planning_ = false;
  if (seqs) {
    replay_.resume(std::move(*seqs));
    log::room("delivery").info("sink {}: going on with a replay, {} events are left", run_.name, replay_.size());
    end_if_finished();
  } else if (!run_.stopping) {
    cursor_.retry_later("plan the replay", seqs.error());
  }
}

Task<void> ReplayJob::fetch() {
  auto seqs = replay_.unfetched(kReplaysAhead);
  auto events = co_await run_.context->outbox.fetch_exact(run_.name, seqs);
  if (!events) {
    replay_.not_fetched(seqs.size());
    cursor_.retry_later("fetch events to replay", events.error());
    co_return;
  }
  const std::size_t asked = seqs.size();
  seqs = covered_seqs(std::move(seqs), *events);
  replay_.not_fetched(asked - seqs.size());
  replay_.fetched(seqs, std::move(*events));
  end_if_finished();
}

std::optional<ReplayQueue::Item> ReplayJob::take() {
  auto item = replay_.take(run_.now(), [this](const std::string& key) { return !cursor_.window().busy(key); });
  if (item) cursor_.window().hold(item->event.key);  // live events of this key wait for it; other keys do not
  return item;
}

Task<void> ReplayJob::deliver(ReplayQueue::Item item) {
  auto event = std::make_shared<const core::StoredEvent>(item.event);
  const core::Attempt attempt = co_await endpoint_.send(std::move(event));
  cursor_.window().release(item.event.key);
  settle(std::move(item), attempt);
  unsaved_ = true;
  end_if_finished();
}

void ReplayJob::settle(ReplayQueue::Item item, const core::Attempt& attempt) {
  using Outcome = core::Attempt::Outcome;
  const std::string key = item.event.key;
  if (attempt.outcome == Outcome::delivered) {
    replay_.done(item, true);
    return endpoint_.delivered(item.event);
  }
  run_.last_error = about(item.event, attempt.detail);
  if (attempt.outcome == Outcome::retry_sink || attempt.outcome == Outcome::disabled) {
    replay_.requeue(std::move(item), run_.now());
    if (attempt.outcome == Outcome::retry_sink) return endpoint_.down(attempt);
    return endpoint_.disable("the receiver asked not to be called again (" + brief(attempt.detail) + ")");
  }
  if (attempt.outcome == Outcome::refused &&
      endpoint_.refused(key, attempt.retry_after_ms) == EndpointHealth::Blame::endpoint) {
    return replay_.requeue(std::move(item), run_.now());
  }
  ++item.attempts;
  if (attempt.content_refused) ++item.event.refusals;
  if (attempt.outcome == Outcome::permanent || (!run_.policy.forever && item.attempts >= kMaxAttempts)) {
    log::room("delivery")
        .warn("sink {}: replayed event {} was refused: {}", run_.name, item.event.stamp.id, attempt.detail);
    replay_.done(item, false);
    if (attempt.outcome == Outcome::permanent) endpoint_.alive(key);
    return;
  }
  const Millis wait = hold_after(run_.policy.forever, item.attempts, attempt.retry_after_ms);
  replay_.requeue(std::move(item), run_.now() + wait);
}

/// A replay that is over before its order was stored ends only when that is stored, because until then what it sent may
/// be lost before a flush.
void ReplayJob::end_if_finished() {
  if (planning_ || !replay_.finished()) return;
  log::room("delivery").info("sink {}: the replay is over: {}", run_.name, replay_.summary());
  replay_.cancel();
  unsaved_ = true;
}

}  // namespace driftd::delivery
