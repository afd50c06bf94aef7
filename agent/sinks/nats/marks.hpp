// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace driftd::sinks {

/// A message that the stream acknowledged: its sequence in the stream and its `Nats-Msg-Id`.
struct Position {
  std::uint64_t stream_seq = 0;  ///< 0: none yet
  std::string id;
};

/// A promise: while the stream holds our message at this position, every event up to `safe` is in it, too, no higher.
struct Mark : Position {
  std::int64_t safe = 0;
};

/// The last acknowledged message, and promises behind it that get sparser with their age; kept in the cursor's notes so
/// that a broker that went backwards is found out after a restart, too. Invariant: the promises ascend in both numbers.
class Marks {
 public:
  /// Notes that the stream has a message of event number `event` (0: of a replay, whose first sending stands where it
  /// was). Returns false if no stream that kept its messages could say so: a new message at or below an older one.
  bool acked(std::uint64_t stream_seq, bool duplicate, const std::string& id, std::int64_t event);
  /// Every event up to `settled_to` was acknowledged, none above the last position. Promises that say more are lowered,
  /// here and by an event that is sent late (a dead letter lives again, the cursor went back).
  void promise(std::int64_t settled_to);
  /// Forgets all but the oldest `count` promises; the last of them is the last position now.
  void keep_oldest(std::size_t count);

  const Position& last() const { return last_; }
  const std::deque<Mark>& all() const { return marks_; }
  void write(std::map<std::string, std::string>& notes) const;
  void read(const std::map<std::string, std::string>& notes);

 private:
  void thin_out();
  void lower(std::int64_t safe, std::uint64_t below);

  Position last_;
  std::deque<Mark> marks_;
};

}  // namespace driftd::sinks
