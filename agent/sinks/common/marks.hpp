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

/// A promise: while the stream holds our message at this position, it also holds every event up to `safe`, at this
/// position or below.
struct Mark : Position {
  std::int64_t safe = 0;
};

/// The last acknowledged message, and older promises that get sparser with their age. They are kept in the cursor's
/// notes, so that a broker that went backwards is detected after a restart, too. Invariant: the promises ascend in both
/// numbers.
class Marks {
 public:
  static constexpr std::size_t kMaxMarks = 17;
  /// Keeps at most `max_marks` promises, at least 3.
  explicit Marks(std::size_t max_marks = kMaxMarks) : max_marks_(max_marks < 3 ? 3 : max_marks) {}
  /// Notes that the stream has a message of event number `event` (0: a replay, whose first message stays where it was).
  /// Returns false if a stream that kept its messages could not answer this: a new message at or below an older one.
  bool acked(std::uint64_t stream_seq, bool duplicate, const std::string& id, std::int64_t event);
  /// Notes that every event up to `settled_to` was acknowledged, at or below the last position. Promises that say more
  /// are lowered, here and when an event is sent late (a requeued dead letter, a cursor that went back).
  void promise(std::int64_t settled_to);
  /// Forgets all but the oldest `count` promises. The last of them becomes the last position.
  void keep_oldest(std::size_t count);

  const Position& last() const { return last_; }
  const std::deque<Mark>& all() const { return marks_; }
  /// Returns the promises as text without line breaks; parse() reads it again and skips what it cannot read.
  std::string render() const;
  void parse(const std::string& text);
  void write(std::map<std::string, std::string>& notes) const { notes["marks"] = render(); }
  void read(const std::map<std::string, std::string>& notes);

 private:
  void thin_out();
  void lower(std::int64_t safe, std::uint64_t below);

  std::size_t max_marks_;
  Position last_;
  std::deque<Mark> marks_;
};

}  // namespace driftd::sinks
