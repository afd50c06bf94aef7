// SPDX-License-Identifier: Apache-2.0
#include "simulation/delivery/receivers.hpp"

#include <algorithm>

namespace driftd::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDuplicateWindow = 10min;
constexpr Duration kCheckEvery = 60s;

}  // namespace

Stream::Ack Stream::append(const core::StoredEvent& event, const std::string& id) {
  const Time now = SimulatedTime::get().now();
  const auto known = newest_of_id_.find(id);
  if (known != newest_of_id_.end() && now - messages_[known->second - 1].at < kDuplicateWindow) {
    receipts.received(event);
    return {known->second, true};
  }
  messages_.push_back({id, now, event.stamp.id});
  newest_of_id_[id] = messages_.size();
  receipts.received(event);
  return {messages_.size(), false};
}

bool Stream::holds(std::uint64_t stream_seq, const std::string& id) const {
  return stream_seq >= 1 && stream_seq <= messages_.size() && messages_[stream_seq - 1].id == id;
}

Duration Stream::time_of_ack() {
  const Time now = SimulatedTime::get().now();
  last_ack_ = std::max(now + latency(), last_ack_ + 1us);
  return last_ack_ - now;
}

void Stream::reconnect() {
  ++connection;
  reconnected();
}

/// The stream keeps its first `kept` messages.
void Stream::lose(std::size_t kept, bool created_anew, bool behind_its_back) {
  oracle->note("bus loses " + std::to_string(messages_.size() - kept) + " messages");
  std::set<std::string> left;
  messages_.resize(kept);
  newest_of_id_.clear();
  for (std::size_t i = 0; i < kept; ++i) {
    newest_of_id_[messages_[i].id] = i + 1;
    left.insert(messages_[i].event);
  }
  if (created_anew) ++created;
  if (behind_its_back) receipts.order_matters = false;
  receipts.lose_all_but(left.size(), behind_its_back ? kCheckEvery : 0s);
  if (!behind_its_back) reconnect();
}

void Stream::lose_tail(std::size_t count) { lose(messages_.size() - std::min(count, messages_.size()), false, false); }

void Stream::go_down() {
  up = false;
  ++connection;
  receipts.disturbed();
}

void Stream::disturb() {
  const int what = static_cast<int>(random() % 7);
  oracle->note("bus is disturbed " + std::to_string(what));
  if (what == 0) {
    go_down();
  } else if (what == 1) {
    ack_lost = 0.3;
    receipts.disturbed();
  } else if (what == 2) {
    reconnect();  // another leader
  } else if (what == 3) {
    slow = true;
  } else if (what == 4 || what == 5) {
    const Time since = SimulatedTime::get().now() - between(10s, 5min);
    const auto kept = std::find_if(messages_.begin(), messages_.end(), [&](const auto& m) { return m.at > since; });
    lose(static_cast<std::size_t>(kept - messages_.begin()), false, what == 5);
  } else {
    lose(0, true, false);
  }
}

void Stream::heal() {
  ack_lost = 0;
  slow = false;
  receipts.calm();
  if (std::exchange(up, true)) return;
  reconnect();
}

void Hook::disturb() {
  const int what = static_cast<int>(random() % 8);
  oracle->note("hook is disturbed " + std::to_string(what));
  const auto some_key = [this] {
    return keys.empty() ? std::string("none")
                        : *std::next(keys.begin(), static_cast<std::ptrdiff_t>(random() % keys.size()));
  };
  receipts.disturbed();
  share = chance(0.5) ? 1 : 0.4;
  if (what == 0) mode = Mode::refuses_connections;
  if (what == 1) mode = Mode::hangs;
  if (what == 2) mode = Mode::loses_answers;
  if (what >= 3 && what <= 6) {
    static constexpr long kStatus[] = {500, 503, 429, 403};
    mode = Mode::answers;
    status = kStatus[random() % 4];
    retry_after_ms = status != 403 && chance(0.4)
                         ? std::chrono::milliseconds(1s).count() * static_cast<std::int64_t>(1 + random() % 90)
                         : 0;
  }
  if (what == 5 || what == 6) {
    only_key = some_key();
    share = 1;
  }
  if (what == 7) mode = chance(0.3) ? Mode::gone : Mode::hangs;
}

void Hook::refuse() {
  receipts.disturbed();
  share = 1;
  mode = Mode::refuses_connections;
}

void Hook::heal() {
  mode = Mode::accepts;
  only_key.clear();
  retry_after_ms = 0;
  share = 1;
  if (!disabled) receipts.calm();
}

void Hook::next_life() {
  if (std::exchange(disabled, false) && mode == Mode::accepts) receipts.calm();
}

void LogFile::disturb() {
  const int what = static_cast<int>(random() % 3);
  oracle->note(receipts.name() + " is disturbed " + std::to_string(what));
  if (what != 2) receipts.disturbed();
  flush_fails = what == 0;
  write_fails = what == 1;
  slow = what == 2;
}

void LogFile::fail_writes() {
  receipts.disturbed();
  write_fails = true;
}

void LogFile::heal() {
  flush_fails = write_fails = slow = false;
  receipts.calm();
}

void LogFile::power_lost() {
  const auto lines = receipts.lines();
  const auto kept = flushed + (lines > flushed ? random() % (lines - flushed + 1) : 0);
  receipts.lose_all_but(kept, 0s);
  flushed = std::min(flushed, kept);
}

}  // namespace driftd::sim
