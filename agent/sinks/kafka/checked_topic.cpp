// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/checked_topic.hpp"

#include "base/log.hpp"

namespace driftd::sinks {
namespace {

constexpr std::chrono::seconds kLookAgain{5};  // between checks because a partition has no leader

constexpr const char* kMarksNote = "kafka_marks";
constexpr const char* kTopicNote = "kafka_topic";

}  // namespace

KnownTopic CheckedTopic::begin_check(const std::map<std::string, std::string>& notes) {
  if (!std::exchange(notes_read_, true)) {
    const auto marks = notes.find(kMarksNote), topic = notes.find(kTopicNote);
    if (marks != notes.end()) positions_.parse(marks->second);
    if (topic != notes.end()) positions_topic_ = topic->second;
  }
  look_again_ = false;
  return {positions_.all(), positions_topic_, checks_++};
}

void CheckedTopic::apply(TopicInspection seen, std::uint64_t began_at, std::map<std::string, std::string>& notes) {
  if (partitions_ != 0 && partitions_ != seen.partitions) {
    log::room("delivery")
        .warn(
            "sink {}: topic {} has {} partitions now, it had {}: events of one resource may be in two partitions, "
            "compare "
            "ce_driftseq",
            sink_, topic_, seen.partitions, partitions_);
  }
  if (seen.warnings != warnings_ && !seen.warnings.empty())
    log::room("delivery").warn("sink {}: topic {}: {}", sink_, topic_, seen.warnings);
  warnings_ = std::move(seen.warnings);
  checked_ = began_at;
  checked_at_ = std::chrono::steady_clock::now();
  partitions_ = seen.partitions;
  trusted_ = std::move(seen.trusted);
  positions_.resize(partitions_);
  positions_topic_ = topic_;
  notes[kTopicNote] = topic_;
  if (!seen.loss) return;
  for (const auto& [partition, kept] : seen.loss->marks_kept) positions_.keep_oldest(partition, kept);
}

bool CheckedTopic::has_leader(std::int32_t partition) {
  if (trusted_.count(partition) != 0) return true;
  look_again_ = look_again_ || std::chrono::steady_clock::now() - checked_at_ > kLookAgain;
  return false;
}

void CheckedTopic::note(std::map<std::string, std::string>& notes, std::int64_t settled_to) {
  if (!notes_read_) return;
  positions_.promise(settled_to);
  notes[kMarksNote] = positions_.render();
}

}  // namespace driftd::sinks
