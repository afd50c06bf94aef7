// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "sinks/kafka/positions.hpp"
#include "sinks/kafka/topic.hpp"

namespace driftd::sinks {

/// What the sink knows about its topic: the last check, what may have changed since, and where our records are. Core
/// thread.
class CheckedTopic {
 public:
  CheckedTopic(std::string sink, std::string topic) : sink_(std::move(sink)), topic_(std::move(topic)) {}

  /// Returns what a check needs. The first call reads the notes of an earlier agent.
  KnownTopic begin_check(const std::map<std::string, std::string>& notes);
  /// Takes the result of a check that began at this value of doubts(). Logs what is new in it.
  void apply(TopicInspection seen, std::uint64_t began_at, std::map<std::string, std::string>& notes);
  /// Something may have been lost or changed: nothing is sent or settled before the next check.
  void doubt() { ++doubts_; }
  std::uint64_t doubts() const { return doubts_; }
  /// The client is a new one, on which the topic was not checked.
  void forget_check() { checked_.reset(); }
  bool checked() const { return checked_ && *checked_ == doubts_; }
  bool was_checked() const { return checked_.has_value(); }
  bool must_check() const { return look_again_ || !checked(); }

  int partitions() const { return partitions_; }
  /// Returns true if the partition had a leader at the last check. If not, another check is asked for some seconds
  /// after that one; nothing is in doubt.
  bool has_leader(std::int32_t partition);
  /// See Positions::acked().
  bool acked(std::int32_t partition, std::int64_t offset, const std::string& id, std::int64_t event) {
    return positions_.acked(partition, offset, id, event);
  }
  void note(std::map<std::string, std::string>& notes, std::int64_t settled_to);
  const std::string& warnings() const { return warnings_; }

 private:
  std::string sink_, topic_;
  Positions positions_;
  bool notes_read_ = false;
  std::string positions_topic_;           ///< the topic that positions_ are about
  std::optional<std::uint64_t> checked_;  ///< the value of doubts_ for which the topic was checked
  std::uint64_t doubts_ = 0;
  bool look_again_ = false;
  std::chrono::steady_clock::time_point checked_at_{};
  unsigned checks_ = 0;
  int partitions_ = 0;
  std::set<std::int32_t> trusted_;
  std::string warnings_;
};

}  // namespace driftd::sinks
