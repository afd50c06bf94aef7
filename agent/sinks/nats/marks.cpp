// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/marks.hpp"

#include <cstdlib>
#include <sstream>

namespace driftd::sinks {
namespace {

constexpr int kEvery = 256;
constexpr std::size_t kMost = 17;

}  // namespace

void Marks::acked(Mark mark) {
  if (!marks_.empty() && mark.stream_seq <= marks_.back().stream_seq) return;  // acks overtake each other
  if (!marks_.empty() && ++since_kept_ < kEvery) {
    marks_.back() = std::move(mark);
    return;
  }
  since_kept_ = 0;
  if (!marks_.empty()) marks_.push_back(marks_.back());
  if (marks_.empty()) marks_.push_back(mark);
  marks_.back() = std::move(mark);
  while (marks_.size() > kMost) marks_.pop_front();
}

void Marks::cut_after(std::uint64_t stream_seq) {
  while (!marks_.empty() && marks_.back().stream_seq > stream_seq) marks_.pop_back();
}

void Marks::write(std::map<std::string, std::string>& notes) const {
  std::string text;
  for (const auto& mark : marks_) {
    text += (text.empty() ? "" : " ") + std::to_string(mark.stream_seq) + ":" + std::to_string(mark.safe) + ":" + mark.id;
  }
  notes["marks"] = text;
}

void Marks::read(const std::map<std::string, std::string>& notes) {
  const auto found = notes.find("marks");
  if (found == notes.end()) return;
  marks_.clear();
  std::istringstream in(found->second);
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
}

}  // namespace driftd::sinks
