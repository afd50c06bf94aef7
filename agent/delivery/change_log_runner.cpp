// SPDX-License-Identifier: Apache-2.0
#include "delivery/change_log_runner.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"

namespace driftd::delivery {
namespace {

using std::chrono::nanoseconds;
using Verdict = core::ChangeLogReceiver::Answer::Verdict;

constexpr int kBatch = 256;
constexpr std::size_t kBatchBytes = 1u << 20;
constexpr std::chrono::milliseconds kBetweenLooks{100};  // the ends of many operations are looked at together
constexpr std::chrono::seconds kAtLeastEvery{5};
constexpr std::chrono::seconds kLimitEvery{5};
constexpr std::chrono::seconds kStalledAfter{30};
// A receiver that is killed again and again loses connections too, so a lost one is a weak sign against an entry.
constexpr int kMaxStrikes = 20, kStrikesOfRejection = 4;

}  // namespace

ChangeLogRunner::ChangeLogRunner(ChangeLogNeeds needs)
    : needs_(std::move(needs)),
      timer_(needs_.core),
      backoff_(needs_.first_wait, needs_.max_wait) {}

void ChangeLogRunner::start() {
  if (std::exchange(running_, true)) return;
  asio::co_spawn(needs_.core, run(), fatal);
}

void ChangeLogRunner::wake() {
  woken_ = true;
  timer_.cancel();
}

void ChangeLogRunner::stop() {
  stopping_ = true;
  needs_.receiver->stop();
  timer_.cancel();
}

core::ChangeLogView ChangeLogRunner::view() const {
  core::ChangeLogView out;
  out.on = true;
  out.destination = needs_.receiver->describe();
  out.waiting = position_.newest - position_.settled;
  out.oldest_ns = position_.oldest_ns;
  out.failing = !fault_.empty();
  out.state = out.failing ? fault_ : out.waiting > 0 ? "sending" : "idle";
  out.sent = sent_;
  out.failures = failures_;
  out.refused = position_.refused;
  out.dropped = position_.dropped;
  return out;
}

void ChangeLogRunner::note_failure(const std::string& text) {
  const auto now = needs_.clock->mono();
  ++failures_;
  if (fault_.empty()) {
    failing_since_ = now;
    log::room("delivery")
        .warn("change log: {} does not take entries, which wait in the store: {}", needs_.receiver->describe(), text);
  }
  fault_ = text;
  next_try_ = now + backoff_.next();
  if (now - failing_since_ < kStalledAfter || std::exchange(stall_reported_, true)) return;
  log::room("delivery")
      .error(
          "change log: {} entries wait and none was taken for {} s by {}: {}. Start the sidecar, or correct "
          "change_log; "
          "above change_log.max_backlog_bytes ({}) the oldest are given up",
          position_.newest - position_.settled, kStalledAfter.count(), needs_.receiver->describe(), text,
          needs_.max_backlog_bytes);
}

Task<Status> ChangeLogRunner::settle(Settlement settlement, std::int64_t written) {
  const std::int64_t settled = settlement.settled;
  const bool with_event = !settlement.refused.empty();
  for (const auto& one : settlement.refused) {
    log::room("delivery")
        .error("change log: entry {} (operation {}) is given up: {}", one.sequence, one.operation, one.why);
  }
  DRIFTD_CO_CHECK(co_await needs_.store->settle(std::move(settlement)));
  if (with_event && needs_.event_stored) needs_.event_stored();
  if (!fault_.empty()) log::room("delivery").info("change log: {} takes entries again", needs_.receiver->describe());
  fault_.clear();
  head_ = {};
  stall_reported_ = false;
  backoff_.reset();
  sent_ += written;
  position_.settled = std::max(position_.settled, settled);
  if (position_.settled == position_.newest) position_.oldest_ns = 0;
  woken_ = true;  // there may be more
  co_return Status{};
}

/// Rows that somebody removed, or that the disk lost, must neither stop the entries behind them nor be forgotten.
void ChangeLogRunner::note_missing_rows(const Entries& entries, Settlement& to) const {
  const std::int64_t first = position_.settled + 1;
  const std::int64_t found = entries.empty() ? position_.newest + 1 : entries.front().sequence;
  if (found <= first) return;
  to.settled = found - 1;
  to.refused.push_back({first, "unknown",
                        "the rows of entries " + std::to_string(first) + " to " + std::to_string(found - 1) +
                            " are not in the store; look at the disk, `driftd verify` checks the store"});
}

bool ChangeLogRunner::blame_head(const Answer& answer, const Entries& entries) {
  if (answer.verdict == Verdict::busy) return false;
  const std::int64_t first = entries.front().sequence;
  const bool alone = entries.size() == 1;
  if (head_.sequence != first) head_ = {first, 0, false};
  if (!alone) return false;
  head_.strikes += answer.verdict == Verdict::rejected ? kStrikesOfRejection : 1;
  if (head_.strikes < kMaxStrikes) return false;
  if (head_.bare) return true;
  head_.bare = true;
  head_.strikes = 0;
  return false;
}

Task<bool> ChangeLogRunner::send_refused_bare(Entries entries, std::vector<std::string> refusals, Settlement& to) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::string why = refusals[i];
    if (!why.empty() && !entries[i].bare) {
      entries[i].bare = true;
      entries[i].why_bare = "the receiver refused the whole entry: " + why;
      Entries one;
      one.push_back(entries[i]);
      const Answer answer = co_await needs_.receiver->write(std::move(one));
      if (answer.verdict != Verdict::answered || answer.refusals.size() != 1) {
        note_failure(answer.text);
        co_return false;
      }
      why = answer.refusals.front();
    }
    to.settled = entries[i].sequence;
    if (!why.empty()) to.refused.push_back({entries[i].sequence, entries[i].operation.id, why});
  }
  co_return true;
}

Task<Status> ChangeLogRunner::send(Entries entries) {
  if (!fault_.empty()) {  // does it answer without the entries?
    Entries none;
    const Answer probe = co_await needs_.receiver->write(std::move(none));
    if (probe.verdict != Verdict::answered) {
      if (!stopping_) note_failure(probe.text);
      co_return Status{};
    }
  }
  Settlement settlement;
  Entries sent = entries;
  Answer answer = co_await needs_.receiver->write(std::move(sent));
  if (answer.verdict == Verdict::answered && answer.refusals.size() != entries.size()) {
    answer.verdict = Verdict::rejected;
    answer.text = "the receiver answered about " + std::to_string(answer.refusals.size()) + " of " +
                  std::to_string(entries.size()) + " entries";
  }
  if (stopping_ && answer.verdict != Verdict::answered) co_return Status{};
  if (answer.verdict != Verdict::answered) {
    const bool give_up = blame_head(answer, entries);
    note_failure(answer.text);
    if (!give_up) co_return Status{};
    settlement.settled = entries.front().sequence;
    settlement.refused.push_back({entries.front().sequence, entries.front().operation.id, answer.text});
    const Status given_up = co_await settle(std::move(settlement), 0);
    co_return given_up;
  }
  const bool all = co_await send_refused_bare(std::move(entries), std::move(answer.refusals), settlement);
  if (settlement.settled == 0) co_return Status{};
  const std::string fault = all ? std::string() : fault_;
  const auto written = settlement.settled - position_.settled - static_cast<std::int64_t>(settlement.refused.size());
  const Status settled = co_await settle(std::move(settlement), written);
  fault_ = fault;
  co_return settled;
}

Task<Status> ChangeLogRunner::look() {
  const auto now = needs_.clock->mono();
  last_look_ = now;
  if (now - last_limit_ >= kLimitEvery) {
    last_limit_ = now;
    DRIFTD_CO_TRY(const auto dropped, co_await needs_.store->limit(needs_.max_backlog_bytes));
    if (dropped > 0 && needs_.event_stored) needs_.event_stored();
  }
  DRIFTD_CO_TRY(position_, co_await needs_.store->position());
  if (position_.newest <= position_.settled) {
    fault_.clear();
    co_return Status{};
  }
  const bool careful = head_.sequence == position_.settled + 1;
  DRIFTD_CO_TRY(Entries entries, co_await needs_.store->after(position_.settled, careful ? 1 : kBatch, kBatchBytes));
  Settlement missing;
  note_missing_rows(entries, missing);
  if (!missing.refused.empty()) DRIFTD_CO_CHECK(co_await settle(std::move(missing), 0));
  if (entries.empty()) co_return Status{};
  if (careful && head_.bare) {
    entries.front().bare = true;
    entries.front().why_bare = "the receiver did not answer when it got the whole entry: " + fault_;
  }
  const Status sent = co_await send(std::move(entries));
  co_return sent;
}

std::chrono::nanoseconds ChangeLogRunner::wait_time() const {
  const auto now = needs_.clock->mono();
  if (!fault_.empty()) return std::max(nanoseconds(0), nanoseconds(next_try_ - now));
  const nanoseconds pause = std::max(nanoseconds(0), nanoseconds(kBetweenLooks) - nanoseconds(now - last_look_));
  const bool more = position_.newest > position_.settled;
  if (more) return nanoseconds(0);
  return woken_ ? pause : std::max(pause, nanoseconds(kAtLeastEvery));
}

Task<void> ChangeLogRunner::run() {
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
    if (!done) note_failure(done.error().message);
  }
  running_ = false;
}

}  // namespace driftd::delivery
