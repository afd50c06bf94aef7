// SPDX-License-Identifier: Apache-2.0
#include "cli/glance_list.hpp"

#include <algorithm>
#include <array>
#include <dtl/dtl.hpp>
#include <map>

#include "base/escape.hpp"

namespace driftd::cli {
namespace {

using core::Value;

constexpr std::size_t kMaxMoves = 5'000;  ///< elements of lists whose moves are named
constexpr std::size_t kMaxPairs = 10'000;

/// How many members of two objects are equal, in thousandths of the larger one.
std::size_t likeness(const Value& a, const Value& b) {
  const auto *left = a.object(), *right = b.object();
  if (left == nullptr || right == nullptr || left->empty() || right->empty()) return 0;
  const auto same = std::count_if(left->begin(), left->end(), [&](const auto& member) {
    const auto other = right->find(member.first);
    return other != right->end() && other->second == member.second;
  });
  return static_cast<std::size_t>(same) * 1'000 / std::max(left->size(), right->size());
}

/// Pairs removed and added elements that have at least a third of their members in common, the likest first.
void pair_by_likeness(const Value::Array& before, const Value::Array& after, ListDifference& out) {
  if (out.removed.size() * out.added.size() > kMaxPairs) return;
  std::vector<std::pair<std::size_t, std::pair<std::size_t, std::size_t>>> pairs;
  for (const auto left : out.removed) {
    for (const auto right : out.added) {
      const auto like = likeness(before[left], after[right]);
      if (like >= 333) pairs.push_back({like, {left, right}});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [like, pair] : pairs) {
    const auto left = std::find(out.removed.begin(), out.removed.end(), pair.first);
    const auto right = std::find(out.added.begin(), out.added.end(), pair.second);
    if (left == out.removed.end() || right == out.added.end()) continue;
    out.changed.push_back(pair);
    out.removed.erase(left);
    out.added.erase(right);
  }
  std::sort(out.changed.begin(), out.changed.end());
}

/// Two lists with the same elements: names those that are not in the longest common order.
void name_moves(const std::vector<std::string>& before, const std::vector<std::string>& after, ListDifference& out) {
  if (before == after) return;
  if (before.size() > kMaxMoves) {
    out.another_order = true;
    return;
  }
  dtl::Diff<std::string> diff(before, after);
  diff.compose();
  std::multimap<std::string, std::size_t> from;
  for (const auto& [text, info] : diff.getSes().getSequence()) {
    if (info.type == dtl::SES_DELETE) from.emplace(text, static_cast<std::size_t>(info.beforeIdx - 1));
  }
  for (const auto& [text, info] : diff.getSes().getSequence()) {
    if (info.type != dtl::SES_ADD) continue;
    const auto at = from.find(text);
    if (at == from.end()) continue;
    out.moved.emplace_back(at->second, static_cast<std::size_t>(info.afterIdx - 1));
    from.erase(at);
  }
}

}  // namespace

ListDifference difference(const Value::Array& before, const Value::Array& after) {
  ListDifference out;
  std::multimap<std::string, std::size_t> unmatched;
  std::vector<std::string> left, right;
  for (const auto& element : before) left.push_back(core::render(element));
  for (const auto& element : after) right.push_back(core::render(element));
  for (std::size_t i = 0; i < right.size(); ++i) unmatched.emplace(right[i], i);
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto found = unmatched.find(left[i]);
    if (found == unmatched.end()) {
      out.removed.push_back(i);
    } else {
      unmatched.erase(found);
    }
  }
  for (const auto& [text, at] : unmatched) out.added.push_back(at);
  std::sort(out.added.begin(), out.added.end());
  if (out.removed.empty() && out.added.empty()) {
    name_moves(left, right, out);
  } else {
    pair_by_likeness(before, after, out);
  }
  return out;
}

std::string short_text(std::string_view text, std::size_t width) {
  if (text.size() <= width) return std::string(text);
  return std::string(front(text, width > 3 ? width - 3 : 0)) + "…";  // … has three bytes
}

std::string element_name(const core::Value& before, const core::Value& after) {
  static constexpr std::array kNames = {"name", "Name",      "id",    "Id",      "Sid",
                                        "type", "databases", "users", "address", "host"};
  const auto text = [](const core::Value& value) { return value.string() ? *value.string() : std::string(); };
  std::string out;
  if (before.object() == nullptr || after.object() == nullptr) return out;
  for (const char* member : kNames) {
    const core::Value* was = before.find(member);
    const core::Value* is = after.find(member);
    if (was == nullptr || is == nullptr || *was != *is) continue;
    std::string shown = text(*was);
    if (const auto* list = was->array()) {
      for (const auto& one : *list) shown += (shown.empty() ? "" : ",") + text(one);
    }
    if (!shown.empty()) out += (out.empty() ? "" : " ") + shown;
  }
  return out;
}

}  // namespace driftd::cli
