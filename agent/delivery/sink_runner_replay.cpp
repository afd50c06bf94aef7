// SPDX-License-Identifier: Apache-2.0
// Sending stored events again: replays by command, and dead letters that are requeued.

#include <boost/asio/as_tuple.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "delivery/answer.hpp"
#include "delivery/sink_runner.hpp"

namespace driftd::delivery {
namespace {

constexpr int kReplayPage = 512;
constexpr int kMaxAttempts = 5;  // for one replayed event, if the sink does not retry for ever

bool selected(const core::StoredEvent& event, const Replay::Order& order) {
  if (event.stamp.seq < order.from || event.stamp.recorded_ns < order.from_ns) return false;
  return order.key.empty() || event.key == order.key || event.backend + "/" + event.resource == order.key;
}

}  // namespace

Task<Result<std::int64_t>> SinkRunner::replay(core::Control::Replay request) {
  const auto self = shared_from_this();
  if (!opened_ || stopping_) {
    co_return fail(Code::unavailable, "sink " + name_ + ": its cursor is not open" +
                                          (last_error_.empty() ? std::string() : " (" + last_error_ + ")") +
                                          "; try again later");
  }
  if (planning_ || replay_.active()) {
    co_return fail(Code::conflict, "sink " + name_ + ": a replay is under way; wait for its end");
  }
  planning_ = true;
  Replay::Order order{request.from_seq, window_.fetched_to(), request.from_ns, request.rate, request.key};
  auto count = co_await begin_replay(std::move(order), std::move(request.from_id));
  planning_ = false;
  wake();
  co_return count;
}

/// Returns once the order is stored, so that an answered replay survives a kill.
Task<Result<std::int64_t>> SinkRunner::begin_replay(Replay::Order order, std::string from_id) {
  Replay::Order asked = order;
  DRIFTD_CO_TRY(auto seqs, co_await plan(std::move(asked), std::move(from_id)));
  const auto count = static_cast<std::int64_t>(seqs.size());
  if (seqs.empty()) co_return count;
  order.from = seqs.front();
  const auto failures = saves_failed_;
  replay_.begin(std::move(order), std::move(seqs));
  unsaved_replay_ = save_now_ = true;
  wake();
  while (saved_notes_.count("replay") == 0 && replay_.active()) {
    if (saves_failed_ != failures || stopping_) {
      replay_.cancel();
      unsaved_replay_ = true;
      co_return fail(Code::unavailable, "sink " + name_ + ": the replay could not be stored (" + last_error_ +
                                            "); nothing more is sent again");
    }
    saved_.expires_at(Time::max());
    co_await saved_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  co_return count;
}

Task<Result<std::vector<std::int64_t>>> SinkRunner::plan(Replay::Order order, std::string from_id) {
  std::int64_t after = std::max<std::int64_t>(0, order.from - 1);
  bool reached = from_id.empty();
  std::vector<std::int64_t> seqs;
  while (after < order.to) {
    DRIFTD_CO_TRY(const auto page, co_await context_->outbox.fetch(name_, after, kReplayPage));
    if (stopping_) co_return fail(Code::cancelled, "the agent stops");
    if (page.empty()) break;
    for (const auto& event : page) {
      after = event.stamp.seq;
      reached = reached || event.stamp.id == from_id;
      const bool live = window_.find(after) != nullptr || after > order.to;
      if (reached && !live && selected(event, order)) seqs.push_back(after);
    }
  }
  if (!reached) co_return fail(Code::not_found, "sink " + name_ + " never had an event " + from_id);
  co_return seqs;
}

/// Continues a replay that the last process did not finish.
Task<void> SinkRunner::resume_replay() {
  const auto self = shared_from_this();
  Replay::Order order = *replay_.order();
  std::string from_start;
  auto seqs = co_await plan(std::move(order), std::move(from_start));
  planning_ = false;
  if (seqs) {
    log::room("delivery").info("sink {}: going on with a replay, {} events are left", name_, seqs->size());
    replay_.begin(Replay::Order(*replay_.order()), std::move(*seqs));
    end_replay();
  } else if (!stopping_) {
    retry_store_later("plan the replay", seqs.error());
  }
  wake();
}

Task<void> SinkRunner::fetch_replays() {
  auto seqs = replay_.unfetched(kReplaysAhead);
  auto events = co_await context_->outbox.fetch_exact(name_, seqs);
  if (!events) {
    replay_.not_fetched(seqs.size());
    retry_store_later("fetch events to replay", events.error());
    co_return;
  }
  const std::size_t asked = seqs.size();
  seqs = covered_seqs(std::move(seqs), *events);
  replay_.not_fetched(asked - seqs.size());
  replay_.fetched(seqs, std::move(*events));
  end_replay();
}

void SinkRunner::send_replay() {
  auto item = replay_.take(now(), [this](const std::string& key) { return !window_.busy(key); });
  if (!item) return;
  window_.hold(item->event.key);  // live events of this key wait for it; other keys do not
  asio::co_spawn(context_->core, deliver_replay(std::move(*item)), fatal);
}

Task<void> SinkRunner::deliver_replay(Replay::Item item) {
  const auto self = shared_from_this();
  const core::Attempt attempt = co_await sink_->send(item.event);
  count(item.event, attempt);
  window_.release(item.event.key);
  settle_replay(std::move(item), attempt);
  unsaved_replay_ = true;
  end_replay();
  wake();
}

void SinkRunner::settle_replay(Replay::Item item, const core::Attempt& attempt) {
  using Outcome = core::Attempt::Outcome;
  const std::string key = item.event.key;
  if (attempt.outcome == Outcome::delivered) {
    ++delivered_;
    unflushed_ = true;
    replay_.done(item, true);
    return endpoint_alive(key);
  }
  last_error_ = attempt.detail;
  if (attempt.outcome == Outcome::retry_sink || attempt.outcome == Outcome::disabled) {
    replay_.requeue(std::move(item), now());
    if (attempt.outcome == Outcome::retry_sink) return endpoint_failed(attempt);
    return disable("the receiver asked not to be called again (" + attempt.detail + ")");
  }
  if (attempt.outcome == Outcome::refused) {
    const auto before = endpoint_.state(now());
    if (endpoint_.refused(key, now(), attempt.retry_after_ms) == Endpoint::Blame::endpoint) {
      replay_.requeue(std::move(item), now());
      return circuit_opened(before);
    }
  }
  ++item.attempts;
  if (attempt.outcome == Outcome::permanent || (!policy_.forever && item.attempts >= kMaxAttempts)) {
    log::room("delivery")
        .warn("sink {}: replayed event {} was refused: {}", name_, item.event.stamp.id, attempt.detail);
    replay_.done(item, false);
    if (attempt.outcome == Outcome::permanent) endpoint_alive(key);
    return;
  }
  const Millis wait = hold_after(policy_.forever, item.attempts, attempt.retry_after_ms);
  replay_.requeue(std::move(item), now() + wait);
}

void SinkRunner::end_replay() {
  if (!replay_.finished()) return;
  log::room("delivery").info("sink {}: the replay is over: {}", name_, replay_.summary());
  replay_.cancel();
  unsaved_replay_ = true;
}

Task<Result<std::int64_t>> SinkRunner::dead_letter(std::string verb, std::vector<std::int64_t> seqs) {
  const auto self = shared_from_this();
  if (verb != "replay" && verb != "drop") {
    co_return fail(Code::invalid,
                   "dead letters of sink " + name_ + ": unknown verb '" + verb + "'; expected replay or drop");
  }
  if (seqs.empty()) seqs.assign(window_.dead().begin(), window_.dead().end());
  std::erase_if(seqs, [this](std::int64_t seq) { return window_.dead().count(seq) == 0; });
  if (verb == "drop") {
    for (const auto seq : seqs) window_.drop_dead(seq);
  } else {
    std::vector<std::int64_t> gone;
    for (std::size_t at = 0; at < seqs.size();) {
      const auto first = seqs.begin() + static_cast<std::ptrdiff_t>(at);
      const auto size = static_cast<std::ptrdiff_t>(std::min<std::size_t>(kReplayPage, seqs.size() - at));
      std::vector<std::int64_t> some(first, first + size);
      DRIFTD_CO_TRY(auto events, co_await context_->outbox.fetch_exact(name_, some));
      some = covered_seqs(std::move(some), events);
      at += some.size();
      for (auto& event : events) window_.requeue_dead(std::move(event));
      for (const auto seq : some) {
        if (window_.dead().count(seq) != 0) gone.push_back(seq);
      }
    }
    lost(gone);
  }
  wake_and_fetch();
  co_return static_cast<std::int64_t>(seqs.size());
}

}  // namespace driftd::delivery
