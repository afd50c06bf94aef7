// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/positions.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace driftd::sinks {
namespace {

constexpr std::size_t kMaxMarksInAll = 17 * 16;  // promises of a topic; 3 for each partition if it has many

}  // namespace

void Positions::resize(int partitions) {
  marks_each_ = std::min(Marks::kMaxMarks, kMaxMarksInAll / static_cast<std::size_t>(std::max(1, partitions)));
}

Marks& Positions::of(std::int32_t partition) { return marks_.try_emplace(partition, marks_each_).first->second; }

bool Positions::acked(std::int32_t partition, std::int64_t offset, const std::string& id, std::int64_t event) {
  return of(partition).acked(static_cast<std::uint64_t>(offset) + 1, false, id, event);
}

void Positions::promise(std::int64_t settled_to) {
  for (auto& [partition, marks] : marks_) marks.promise(settled_to);
}

void Positions::keep_oldest(std::int32_t partition, std::size_t count) {
  of(partition).keep_oldest(count);
  if (count == 0) marks_.erase(partition);
}

/// `0 11:10:ID 21:19:ID|1 9:10:ID`
std::string Positions::render() const {
  std::string out;
  for (const auto& [partition, marks] : marks_) {
    const std::string text = marks.render();
    if (!text.empty()) out += (out.empty() ? "" : "|") + std::to_string(partition) + " " + text;
  }
  return out;
}

void Positions::parse(const std::string& text) {
  marks_.clear();
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, '|');) {
    char* end = nullptr;
    const long partition = std::strtol(one.c_str(), &end, 10);
    if (end == one.c_str() || *end != ' ') continue;
    of(static_cast<std::int32_t>(partition)).parse(end + 1);
  }
}

}  // namespace driftd::sinks
