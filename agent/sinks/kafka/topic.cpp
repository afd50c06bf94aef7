// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/topic.hpp"

#include <algorithm>

#include "sinks/kafka/failure_text.hpp"
#include "sinks/kafka/topic_admin.hpp"
#include "sinks/kafka/topic_reader.hpp"

namespace driftd::sinks {
namespace {

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : between) + part;
  return out;
}

/// One check of the topic.
class TopicCheck {
 public:
  TopicCheck(KafkaClient& client, const KafkaSettings& settings, const KnownTopic& memory)
      : client_(client),
        settings_(settings),
        memory_(memory) {}
  Result<TopicInspection> run();

 private:
  Status find_loss();
  Status measure(std::set<std::int32_t> lossy);
  Result<std::map<std::int32_t, Found>> look(const std::map<std::int32_t, Position>& at);
  Found without_reading(std::int32_t partition, const Position& position) const;
  Found missing(std::int32_t partition, const Position& position);
  void compare();
  void differs(const char* key, const std::string& wanted, const std::string& found);
  bool compacts() const;

  KafkaClient& client_;
  const KafkaSettings& settings_;
  const KnownTopic& memory_;
  TopicShape shape_;
  TopicConfig config_;
  Ranges ranges_;
  bool unreadable_ = false;
  std::vector<std::string> warnings_;
  TopicInspection out_;
};

bool TopicCheck::compacts() const {
  const auto found = config_.values.find("cleanup.policy");
  return found != config_.values.end() && found->second.find("compact") != std::string::npos;
}

/// Returns what the ends of the partition say; `unread` if the record must be read.
Found TopicCheck::without_reading(std::int32_t partition, const Position& position) const {
  if (partition >= shape_.partitions) return Found::not_ours;  // the topic has fewer partitions than it had
  const auto range = ranges_.find(partition);
  if (range == ranges_.end()) return Found::unchecked;
  const auto offset = static_cast<std::int64_t>(position.stream_seq) - 1;
  if (offset >= range->second.end) return Found::not_ours;
  return offset < range->second.begin ? Found::ours : Found::unread;  // before the beginning: expired, it was there
}

/// Returns what it means that no record has this offset.
Found TopicCheck::missing(std::int32_t partition, const Position& position) {
  if (compacts()) return Found::ours;
  if (config_.values.empty()) {  // it may be compacted
    unreadable_ = true;
    return Found::unread;
  }
  const auto now = ranges_of(client_, {partition});  // it may have expired since
  const auto range = now.find(partition);
  if (range == now.end()) return Found::unchecked;
  return static_cast<std::int64_t>(position.stream_seq) - 1 < range->second.begin ? Found::ours : Found::not_ours;
}

Result<std::map<std::int32_t, Found>> TopicCheck::look(const std::map<std::int32_t, Position>& at) {
  std::map<std::int32_t, Found> out;
  std::map<std::int32_t, std::int64_t> offsets;
  for (const auto& [partition, position] : at) {
    const Found found = without_reading(partition, position);
    out[partition] = found;
    if (found == Found::unread && !unreadable_) offsets[partition] = static_cast<std::int64_t>(position.stream_seq) - 1;
  }
  if (offsets.empty()) return out;
  DRIFTD_TRY(const auto read, read_ids(client_, offsets));
  for (const auto& [partition, record] : read) {
    const Position& position = at.at(partition);
    if (record.found == Found::ours) {
      out[partition] = record.id == position.id ? Found::ours : Found::not_ours;
    } else {
      out[partition] = record.found == Found::not_ours ? missing(partition, position) : record.found;
    }
    unreadable_ = unreadable_ || record.found == Found::unread;
  }
  return out;
}

Status TopicCheck::find_loss() {
  std::set<std::int32_t> lossy;
  std::map<std::int32_t, Position> last, sample;
  for (const auto& [partition, marks] : memory_.marks) {
    if (marks.last().stream_seq != 0) last[partition] = marks.last();
    if (!marks.all().empty()) sample[partition] = marks.all()[memory_.checks % marks.all().size()];
  }
  for (const auto& positions : {last, sample}) {
    DRIFTD_TRY(const auto found, look(positions));
    for (const auto& [partition, what] : found) {
      if (what == Found::not_ours) lossy.insert(partition);
      if (what == Found::unchecked) out_.trusted.erase(partition);
    }
  }
  const bool other_topic = !memory_.topic.empty() && memory_.topic != settings_.topic;
  if (other_topic) {
    for (const auto& [partition, marks] : memory_.marks) lossy.insert(partition);
  }
  if (lossy.empty()) return {};
  out_.loss = TopicLoss{};
  if (!other_topic) return measure(std::move(lossy));
  for (const auto partition : lossy) out_.loss->marks_kept[partition] = 0;
  return {};
}

/// Checks the marks of each partition from the oldest one. What follows the first mark that does not hold may be lost,
/// whatever newer ones say.
Status TopicCheck::measure(std::set<std::int32_t> lossy) {
  std::map<std::int32_t, std::int64_t> rewind_to;
  for (const auto partition : lossy) {
    out_.loss->marks_kept[partition] = 0;
    rewind_to[partition] = 0;
  }
  for (std::size_t i = 0; !lossy.empty(); ++i) {
    std::map<std::int32_t, Position> positions;
    for (const auto partition : lossy) {
      const auto& marks = memory_.marks.at(partition).all();
      if (i < marks.size()) positions[partition] = marks[i];
    }
    DRIFTD_TRY(const auto found, look(positions));
    lossy.clear();
    for (const auto& [partition, what] : found) {
      if (what != Found::ours) continue;
      lossy.insert(partition);
      ++out_.loss->marks_kept[partition];
      rewind_to[partition] = memory_.marks.at(partition).all()[i].safe;
    }
  }
  const auto lower = [](const auto& a, const auto& b) { return a.second < b.second; };
  out_.loss->rewind_to = std::min_element(rewind_to.begin(), rewind_to.end(), lower)->second;
  return {};
}

void TopicCheck::differs(const char* key, const std::string& wanted, const std::string& found) {
  if (wanted != found)
    warnings_.push_back("its " + std::string(key) + " is " + found + ", the sink's setting is " + wanted +
                        " (an existing topic is not changed)");
}

void TopicCheck::compare() {
  if (settings_.partitions)
    differs("number of partitions", std::to_string(*settings_.partitions), std::to_string(shape_.partitions));
  if (settings_.replication_factor)
    differs("replication factor", std::to_string(*settings_.replication_factor), std::to_string(shape_.replicas));
  if (config_.values.empty()) {
    warnings_.push_back("its configuration cannot be read (" + config_.error +
                        "): its retention and cleanup.policy are not compared");
  }
  const auto retention = config_.values.find("retention.ms");
  if (settings_.retention && retention != config_.values.end())
    differs("retention.ms", std::to_string(settings_.retention->count()), retention->second);
  if (compacts()) warnings_.push_back("its cleanup.policy compacts: only the last event of each resource stays");
  const auto max = config_.values.find("max.message.bytes");
  if (max != config_.values.end()) out_.max_batch_bytes = std::strtoll(max->second.c_str(), nullptr, 10);
  if (unreadable_) {
    warnings_.push_back(
        "the account may not READ it: a loss of acknowledged events is found only if the topic became shorter");
  }
  std::vector<std::string> idle;
  for (int p = 0; p < shape_.partitions; ++p) {
    if (out_.trusted.count(p) == 0) idle.push_back(std::to_string(p));
  }
  if (!idle.empty())
    warnings_.push_back("without an answer from the leader of partition " + joined(idle, ", ") +
                        ": the events of their resources wait");
}

Result<TopicInspection> TopicCheck::run() {
  DRIFTD_TRY(shape_, shape_of(client_, settings_));
  config_ = config_of(client_, settings_);
  out_.partitions = shape_.partitions;
  ranges_ = ranges_of(client_, shape_.led);
  for (const auto& [partition, range] : ranges_) out_.trusted.insert(partition);
  DRIFTD_CHECK(find_loss());
  compare();
  out_.warnings = joined(warnings_, "; ");
  return std::move(out_);
}

}  // namespace

Result<TopicInspection> inspect(KafkaClient& client, const KafkaSettings& settings, const KnownTopic& memory) {
  return TopicCheck(client, settings, memory).run();
}

bool answers(const KafkaClient& client, int wait_ms) {
  const rd_kafka_metadata_t* metadata = nullptr;
  const auto error = rd_kafka_metadata(client.producer(), 0, client.topic(), &metadata, wait_ms);
  if (metadata != nullptr) rd_kafka_metadata_destroy(metadata);
  return error == RD_KAFKA_RESP_ERR_NO_ERROR;
}

}  // namespace driftd::sinks
