// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace driftd::k8s {

/// Takes a List answer apart as it arrives, so that no more than one object is in memory: hands out the text of each
/// element of the member `items` of the outermost object and keeps the rest. Knows just enough of JSON for that: what
/// is inside of an element is not checked.
class ItemSplitter {
 public:
  using Item = std::function<void(const std::string& json)>;

  /// An element of more than `max_bytes` bytes is BUDGET.
  ItemSplitter(Item item, std::size_t max_bytes) : item_(std::move(item)), max_bytes_(max_bytes) {}

  void feed(std::string_view piece);
  /// All but the elements, once everything arrived: `{"metadata":{…},"items":[]}`. CORRUPT: it ended too early.
  const std::string& rest() const;

 private:
  void consume(char c);
  void consume_outside(char c);

  Item item_;
  std::size_t max_bytes_;
  std::string rest_, current_, key_;
  int depth_ = 0;  ///< of objects and lists around the next character
  bool text_ = false, escaped_ = false, collects_key_ = false;
  bool items_ = false;  ///< inside of the list `items`
};

/// Puts lines together: `line` gets each one without its end, as soon as it is whole.
class LineSplitter {
 public:
  using Line = std::function<void(std::string_view)>;
  LineSplitter(Line line, std::size_t max_bytes) : line_(std::move(line)), max_bytes_(max_bytes) {}
  void feed(std::string_view piece);  ///< BUDGET: a line of more than `max_bytes` bytes

 private:
  Line line_;
  std::size_t max_bytes_;
  std::string held_;
};

}  // namespace driftd::k8s
