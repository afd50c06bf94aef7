// SPDX-License-Identifier: Apache-2.0
#include "controller/work_queue.hpp"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <utility>

namespace driftd::controller {
namespace {

constexpr std::size_t kMaxReason = 1'024;
constexpr Duration kMaxDelay = std::chrono::hours(24 * 365);

/// Cuts at a whole character of UTF-8.
std::string shortened(const std::string& reason) {
  if (reason.size() <= kMaxReason) return reason;
  std::size_t end = kMaxReason - 3;
  while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0U) == 0x80U) --end;
  return reason.substr(0, end) + "...";
}

/// Rounded up, so that the rate is not exceeded.
Duration period_of(int rate) { return (Duration(std::chrono::seconds(1)) + Duration(rate - 1)) / rate; }

Time earlier(const std::optional<Time>& known, Time due) { return known ? std::min(*known, due) : due; }

}  // namespace

WorkQueue::WorkQueue(const Settings& settings, Random random)
    : settings_(settings),
      random_(std::move(random)),
      tokens_(period_of(settings.retry_rate), settings.retry_burst) {}

WorkQueue::Node& WorkQueue::node_of(const Key& key) {
  const auto [at, is_new] = items_.try_emplace(key);
  if (is_new) at->second.order = ++order_;
  return *at;
}

void WorkQueue::enter_lines(Node& node) {
  Item& item = node.second;
  if (item.in_hand || (!item.fresh && !item.retry)) return;
  if (item.fresh) fresh_.emplace(*item.fresh, item.order, &node);
  if (item.retry) retries_.emplace(*item.retry, item.order, &node);
  item.in_line = true;
  ++waiting_;
}

void WorkQueue::leave_lines(Node& node) {
  Item& item = node.second;
  if (!item.in_line) return;
  if (item.fresh) fresh_.erase({*item.fresh, item.order, &node});
  if (item.retry) retries_.erase({*item.retry, item.order, &node});
  item.in_line = false;
  --waiting_;
}

void WorkQueue::add_at(const Key& key, Time due, Cause cause) {
  Node& node = node_of(key);
  Item& item = node.second;
  if (cause == Cause::resync && (item.in_hand || item.retry)) return;  // it is looked at anyway
  leave_lines(node);
  if (cause == Cause::resync && item.is_failed) {
    item.retry = due;
    item.attempts = settings_.max_retry_attempts - 1;
  } else {
    item.fresh = earlier(item.fresh, due);
  }
  enter_lines(node);
}

/// Whatever is due longest goes first: neither many changes of one key nor many retries hold up another key.
WorkQueue::Node* WorkQueue::next_in_line(Time now) {
  Node* changed = nullptr;
  if (!fresh_.empty() && std::get<Time>(*fresh_.begin()) <= now) changed = std::get<Node*>(*fresh_.begin());
  if (retries_.empty() || std::get<Time>(*retries_.begin()) > now) return changed;
  if (changed != nullptr && *fresh_.begin() < *retries_.begin()) return changed;
  Node* const retry = std::get<Node*>(*retries_.begin());
  const bool for_change = retry->second.fresh && *retry->second.fresh <= now;
  return for_change || tokens_.try_take(now) ? retry : changed;
}

std::optional<Taken> WorkQueue::take(Time now) {
  Node* const node = next_in_line(now);
  if (node == nullptr) return std::nullopt;
  leave_lines(*node);
  Item& item = node->second;
  if (item.fresh && *item.fresh <= now) {
    item.fresh.reset();
    item.attempts = 0;
  }
  item.retry.reset();
  item.in_hand = true;
  ++in_hand_;
  return Taken{node->first, ++item.attempts};
}

WorkQueue::End WorkQueue::finish(const Key& key, const Outcome& outcome, Time now) {
  const auto at = items_.find(key);
  assert(at != items_.end() && at->second.in_hand);
  Item& item = at->second;
  item.in_hand = false;
  --in_hand_;
  const bool forgotten = std::exchange(item.is_forgotten, false);
  if (!forgotten) settle(item, outcome, now);
  // To the end of the line: a key that changes all the time does not hold up those that came meanwhile.
  const bool again = item.fresh && *item.fresh <= now;
  if (again) item.fresh = now;
  item.order = ++order_;
  enter_lines(*at);
  const End end = again            ? End::again
                  : forgotten      ? End::forgotten
                  : item.retry     ? End::retry
                  : item.is_failed ? End::failed
                  : item.fresh     ? End::later
                                   : End::done;
  if (!item.in_line && !item.is_failed) items_.erase(at);
  return end;
}

void WorkQueue::settle(Item& item, const Outcome& outcome, Time now) {
  std::visit(
      [&](const auto& ended) {
        using Ended = std::decay_t<decltype(ended)>;
        if constexpr (std::is_same_v<Ended, Failed>) {
          set_failed(item, ended.reason, now);
        } else if constexpr (std::is_same_v<Ended, Requeue>) {
          retry_or_fail(item, ended.reason, now);
        } else {
          clear_failed(item);
        }
        if constexpr (std::is_same_v<Ended, RequeueAfter>) {
          item.fresh = earlier(item.fresh, now + std::clamp(ended.delay, settings_.retry_first, kMaxDelay));
        }
      },
      outcome);
}

void WorkQueue::retry_or_fail(Item& item, const std::string& reason, Time now) {
  if (item.fresh && *item.fresh <= now) return;  // it changed meanwhile and begins from one
  if (item.attempts < settings_.max_retry_attempts) {
    item.retry = now + backoff(item.attempts);
    return;
  }
  set_failed(item,
             (item.attempts == 1 ? "the only attempt did not succeed: "
                                 : std::to_string(item.attempts) + " attempts in a row did not succeed; the last: ") +
                 (reason.empty() ? "it asked to be tried again and gave no reason" : reason),
             now);
}

void WorkQueue::set_failed(Item& item, const std::string& reason, Time now) {
  if (!item.is_failed) {
    item.failed_since = now;
    ++failed_;
  }
  item.is_failed = true;
  item.reason = shortened(reason);
}

void WorkQueue::clear_failed(Item& item) {
  if (!item.is_failed) return;
  item.is_failed = false;
  item.reason.clear();
  --failed_;
}

/// The first wait doubles with each attempt; a random part of it, but at least half, so that keys that failed together
/// do not come back together.
Duration WorkQueue::backoff(int attempts) {
  Duration bound = settings_.retry_first;
  for (int i = 1; i < attempts && bound < settings_.retry_max; ++i) bound *= 2;
  bound = std::min(bound, settings_.retry_max);
  const auto half = static_cast<std::uint64_t>(bound.count() / 2);
  return bound - Duration(static_cast<Duration::rep>(random_() % (half + 1)));
}

void WorkQueue::forget(const Key& key) {
  const auto at = items_.find(key);
  if (at == items_.end()) return;
  leave_lines(*at);
  Item& item = at->second;
  clear_failed(item);
  item.fresh.reset();
  item.retry.reset();
  if (item.in_hand) {
    item.is_forgotten = true;
  } else {
    items_.erase(at);
  }
}

Time WorkQueue::next_due() const {
  Time out = fresh_.empty() ? Time::max() : std::get<Time>(*fresh_.begin());
  if (!retries_.empty()) out = std::min(out, std::max(std::get<Time>(*retries_.begin()), tokens_.next()));
  return out;
}

std::size_t WorkQueue::pending(Time now) const {
  std::size_t out = retries_.size();
  for (const auto& [due, order, node] : fresh_) {
    if (due > now) break;
    if (!node->second.retry) ++out;
  }
  return out;
}

Duration WorkQueue::oldest_waiting(Time now) const {
  Time first = fresh_.empty() ? now : std::get<Time>(*fresh_.begin());
  if (!retries_.empty()) first = std::min(first, std::get<Time>(*retries_.begin()));
  return std::max(Duration(now - first), Duration::zero());
}

std::vector<FailedKey> WorkQueue::failed() const {
  std::vector<FailedKey> out;
  out.reserve(failed_);
  for (const auto& [key, item] : items_) {
    if (item.is_failed) out.push_back({key, item.reason, item.failed_since});
  }
  return out;
}

}  // namespace driftd::controller
