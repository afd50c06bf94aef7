// SPDX-License-Identifier: Apache-2.0
// Sending again what is stored: replays by command, dead letters that live again.

#include "base/log.hpp"
#include "base/fatal.hpp"
#include "delivery/lane.hpp"

namespace driftd::delivery {
namespace {

constexpr int kPage = 512;
constexpr std::size_t kAhead = 32;
constexpr Millis kAgain{1'000};

bool selected(const core::StoredEvent& event, const core::Control::Replay& request) {
  if (event.stamp.seq < request.from_seq || event.stamp.recorded_ns < request.from_ns) return false;
  return request.key.empty() || event.key == request.key || event.backend + "/" + event.resource == request.key;
}

}  // namespace

Task<Result<std::int64_t>> Lane::replay(core::Control::Replay request) {
  const auto self = shared_from_this();
  if (planning_ || replay_.at < replay_.seqs.size() || !replay_.ready.empty() || !replaying_.empty()) {
    co_return fail(Code::conflict, "sink " + name_ + ": a replay is under way; wait for its end");
  }
  planning_ = true;
  const int rate = request.rate;
  auto seqs = co_await plan(std::move(request));
  planning_ = false;
  if (!seqs) co_return fail(seqs.error());
  const auto count = static_cast<std::int64_t>(seqs->size());
  replay_ = ReplayJob{std::move(*seqs), 0, {}, now(), rate};
  ring();
  co_return count;
}

Task<Result<std::vector<std::int64_t>>> Lane::plan(core::Control::Replay request) {
  const std::int64_t end = window_.fetched_to();
  std::int64_t after = std::max<std::int64_t>(0, request.from_seq - 1);
  bool reached = request.from_id.empty();
  std::vector<std::int64_t> seqs;
  while (after < end) {
    DRIFTD_CO_TRY(const auto page, co_await context_->outbox.fetch(name_, after, kPage));
    if (page.empty()) break;
    for (const auto& event : page) {
      after = event.stamp.seq;
      reached = reached || event.stamp.id == request.from_id;
      const bool live = window_.find(after) != nullptr || after > end;
      if (reached && !live && selected(event, request)) seqs.push_back(after);
    }
  }
  if (!reached) co_return fail(Code::not_found, "sink " + name_ + " never had an event " + request.from_id);
  co_return seqs;
}

Task<void> Lane::fetch_replays() {
  if (!opened_ || stopping_ || replay_.at >= replay_.seqs.size() || replay_.ready.size() >= kAhead) co_return;
  const auto left = std::min(kAhead, replay_.seqs.size() - replay_.at);
  const auto first = replay_.seqs.begin() + static_cast<std::ptrdiff_t>(replay_.at);
  std::vector<std::int64_t> seqs(first, first + static_cast<std::ptrdiff_t>(left));
  replay_.at += left;
  auto events = co_await context_->outbox.fetch_exact(name_, seqs);
  if (!events) {
    replay_.at -= left;
    refuse_to_stall("fetch events to replay", events.error());
    co_return;
  }
  for (auto& event : *events) {
    event.replay = true;
    replay_.ready.push_back(std::move(event));
  }
}

void Lane::send_replays() {
  while (opened_ && !replay_.ready.empty() && may_send() && now() >= replay_.next) {
    const core::StoredEvent& event = replay_.ready.front();
    if (window_.busy(event.key) || replaying_.count(event.key) != 0) return;  // live traffic of that key first
    replaying_.insert(event.key);
    if (replay_.rate > 0) replay_.next = now() + std::chrono::microseconds(1'000'000 / replay_.rate);
    asio::co_spawn(context_->core, deliver_replay(std::move(replay_.ready.front())), fatal);
    replay_.ready.pop_front();
  }
}

Task<void> Lane::deliver_replay(core::StoredEvent event) {
  const auto self = shared_from_this();
  using Outcome = core::Attempt::Outcome;
  const core::Attempt attempt = co_await sink_->send(event);
  replaying_.erase(event.key);
  count(event, attempt);
  switch (attempt.outcome) {
    case Outcome::delivered:
      ++delivered_;
      unflushed_ = true;
      endpoint_alive();
      break;
    case Outcome::retry_event:
      replay_.next = now() + kAgain;
      replay_.ready.push_front(std::move(event));
      break;
    case Outcome::retry_sink:
      replay_.ready.push_front(std::move(event));
      endpoint_failed(attempt);
      break;
    case Outcome::permanent:
      log::room("delivery").warn("sink {}: replayed event {} refused: {}", name_, event.stamp.id, attempt.detail);
      endpoint_alive();
      break;
    case Outcome::disabled: disable("the receiver asked not to be called again (" + attempt.detail + ")"); break;
  }
  rung_ = true;
  bell_.cancel();
}

Task<Result<std::int64_t>> Lane::dead_letter(std::string verb, std::vector<std::int64_t> seqs) {
  const auto self = shared_from_this();
  if (verb != "replay" && verb != "drop") {
    co_return fail(Code::invalid, "dead letters of sink " + name_ + ": unknown verb '" + verb + "'; expected replay or drop");
  }
  if (seqs.empty()) seqs.assign(window_.dead().begin(), window_.dead().end());
  std::erase_if(seqs, [this](std::int64_t seq) { return window_.dead().count(seq) == 0; });
  if (verb == "drop") {
    for (const auto seq : seqs) window_.drop_dead(seq);
  } else {
    for (std::size_t at = 0; at < seqs.size(); at += kPage) {
      const auto first = seqs.begin() + static_cast<std::ptrdiff_t>(at);
      const auto size = static_cast<std::ptrdiff_t>(std::min<std::size_t>(kPage, seqs.size() - at));
      DRIFTD_CO_TRY(auto events, co_await context_->outbox.fetch_exact(name_, std::vector(first, first + size)));
      for (auto& event : events) window_.revive(std::move(event));
    }
  }
  ring();
  co_return static_cast<std::int64_t>(seqs.size());
}

}  // namespace driftd::delivery
