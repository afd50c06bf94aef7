// SPDX-License-Identifier: Apache-2.0
#include "sinks/common/marks.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace driftd::sinks {
namespace {

constexpr std::uint64_t kMinDistance = 256;  // messages between two promises that are kept, except the newest two
constexpr std::size_t kRecent = 8;           // newest promises that are never removed, or half of all if that is less

}  // namespace

void Marks::lower(std::int64_t safe, std::uint64_t below) {
  for (auto mark = marks_.rbegin(); mark != marks_.rend() && mark->safe > safe; ++mark) {
    if (mark->stream_seq < below) mark->safe = safe;
  }
}

bool Marks::acked(std::uint64_t stream_seq, bool duplicate, const std::string& id, std::int64_t event) {
  if (!duplicate && stream_seq <= last_.stream_seq) return false;
  if (event != 0) lower(event - 1, stream_seq);
  if (stream_seq > last_.stream_seq) last_ = {stream_seq, id};
  return true;
}

void Marks::promise(std::int64_t settled_to) {
  lower(settled_to, ~std::uint64_t{0});
  if (last_.stream_seq == 0) return;
  const auto size = marks_.size();
  const bool same = size >= 1 && marks_.back().stream_seq == last_.stream_seq;
  const bool close = size >= 2 && marks_.back().stream_seq - marks_[size - 2].stream_seq < kMinDistance;
  if (same || close) marks_.pop_back();
  marks_.push_back({last_, settled_to});
  thin_out();
}

/// Removes the promise whose neighbours are closest to each other relative to their age. The oldest promise stays: what
/// was sent before it never has to be sent again, however far a broker falls back.
void Marks::thin_out() {
  const std::size_t recent = std::min(kRecent, max_marks_ / 2);
  while (marks_.size() > max_marks_) {
    const auto gap_for_its_age = [this](std::size_t i) {
      return static_cast<double>(marks_[i + 1].stream_seq - marks_[i - 1].stream_seq) /
             static_cast<double>(last_.stream_seq - marks_[i].stream_seq + 1);
    };
    std::size_t victim = 1;
    for (std::size_t i = 2; i + recent < marks_.size(); ++i) {
      if (gap_for_its_age(i) < gap_for_its_age(victim)) victim = i;
    }
    marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(victim));
  }
}

void Marks::keep_oldest(std::size_t count) {
  marks_.resize(std::min(count, marks_.size()));
  last_ = marks_.empty() ? Position{} : marks_.back();
}

std::string Marks::render() const {
  std::string text;
  for (const auto& mark : marks_) {
    text +=
        (text.empty() ? "" : " ") + std::to_string(mark.stream_seq) + ":" + std::to_string(mark.safe) + ":" + mark.id;
  }
  return text;
}

void Marks::read(const std::map<std::string, std::string>& notes) {
  const auto found = notes.find("marks");
  if (found != notes.end()) parse(found->second);
}

void Marks::parse(const std::string& text) {
  marks_.clear();
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    Mark mark;
    char* end = nullptr;
    mark.stream_seq = std::strtoull(word.c_str(), &end, 10);
    if (*end != ':') continue;
    mark.safe = std::strtoll(end + 1, &end, 10);
    if (*end != ':') continue;
    mark.id = end + 1;
    marks_.push_back(std::move(mark));
  }
  last_ = marks_.empty() ? Position{} : marks_.back();
}

}  // namespace driftd::sinks
