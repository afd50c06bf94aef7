// SPDX-License-Identifier: Apache-2.0
#include "core/value/glob_match.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace driftd::core {
namespace {

/// Returns the position of `part` in `text`. memmem is linear also for `aaa…b` in `aaa…`, find() is not.
std::size_t find_part(std::string_view text, std::string_view part) {
  if (part.empty()) return 0;
  const void* at = memmem(text.data(), text.size(), part.data(), part.size());
  return at == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

/// Returns the text of a segment that globs match: indexes and selectors without brackets. `digits` is the buffer for
/// an index.
std::string_view segment_text(const Path::Segment& segment, std::array<char, 24>& digits) {
  if (const auto* name = std::get_if<std::string>(&segment)) return *name;
  if (const auto* selector = std::get_if<Path::Selector>(&segment)) return selector->text;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), std::get<Path::Index>(segment).at).ptr;
  return {digits.data(), static_cast<std::size_t>(end - digits.data())};
}

/// Returns true if the pattern of one segment matches some index.
bool may_be_index(std::string_view pattern) { return pattern.find_first_not_of("0123456789*") == pattern.npos; }

}  // namespace

bool wild_match(std::string_view pattern, std::string_view text) {
  const auto first = pattern.find('*');
  if (first == std::string_view::npos) return pattern == text;
  const auto last = pattern.rfind('*');
  const auto head = pattern.substr(0, first), tail = pattern.substr(last + 1);
  if (text.size() < head.size() + tail.size() || !text.starts_with(head) || !text.ends_with(tail)) return false;
  text = text.substr(head.size(), text.size() - head.size() - tail.size());
  pattern = first == last ? std::string_view() : pattern.substr(first + 1, last - first - 1);
  while (!pattern.empty()) {  // taking the leftmost match of each part leaves the most text for the next ones
    const auto star = std::min(pattern.find('*'), pattern.size());
    const auto at = find_part(text, pattern.substr(0, star));
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + star);
    pattern.remove_prefix(std::min(star + 1, pattern.size()));
  }
  return true;
}

/// Marks a place as reached, and those behind it that `**` reaches without a further segment.
void SegmentMatch::mark_reached(Places& places, std::size_t place) const {
  places[place] = true;
  for (; place < glob_.size() && glob_[place] == "**"; ++place) places[place + 1] = true;
}

/// Matches one member name with dots against several segments of the pattern.
void SegmentMatch::match_joined(std::size_t place, std::string_view segment, std::size_t dots) {
  const std::size_t end = std::min({glob_.size(), place + 1 + dots, place + kMaxJoined});
  std::string pattern = glob_[place];
  for (std::size_t at = place + 1; at < end && glob_[at] != "**"; ++at) {
    pattern += '.' + glob_[at];
    ++steps_;
    if (wild_match(pattern, segment)) mark_reached(next_, at + 1);
  }
}

/// Returns false if no place is left, so that the pattern cannot match any more.
bool SegmentMatch::advance(std::string_view segment) {
  const auto dots = static_cast<std::size_t>(std::count(segment.begin(), segment.end(), '.'));
  next_.assign(glob_.size() + 1, false);
  for (std::size_t place = 0; place < glob_.size(); ++place) {
    if (!now_[place]) continue;
    ++steps_;
    if (glob_[place] == "**") {
      mark_reached(next_, place);
      continue;
    }
    if (wild_match(glob_[place], segment)) mark_reached(next_, place + 1);
    if (dots > 0) match_joined(place, segment, dots);
  }
  std::swap(now_, next_);
  return std::find(now_.begin(), now_.end(), true) != now_.end();
}

/// Returns false if the pattern cannot match a path that begins with this one.
bool SegmentMatch::consume(const std::vector<Path::Segment>& path) {
  steps_ = 0;
  now_.assign(glob_.size() + 1, false);
  mark_reached(now_, 0);
  std::array<char, 24> digits;
  for (const auto& segment : path) {
    if (!advance(segment_text(segment, digits))) return false;
  }
  return true;
}

bool SegmentMatch::run(const std::vector<Path::Segment>& path) { return consume(path) && now_[glob_.size()]; }

Glob::Elements SegmentMatch::elements(const std::vector<Path::Segment>& path) {
  const std::size_t end = glob_.size();
  if (!consume(path)) return Glob::Elements::none;
  if (end > 0 && glob_.back() == "**" && now_[end - 1]) return Glob::Elements::all;
  // Follows the pattern over any number of indexes. A place only leads to later ones, so one pass reaches all.
  next_.assign(end + 1, false);
  for (std::size_t place = 0; place < end; ++place) {
    if (!now_[place] && !next_[place]) continue;
    ++steps_;
    if (glob_[place] == "**" || may_be_index(glob_[place])) mark_reached(next_, place + 1);
  }
  return next_[end] ? Glob::Elements::some : Glob::Elements::none;
}

}  // namespace driftd::core
