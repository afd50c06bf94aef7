// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace driftd::kube {

/// Splits a List answer while it arrives, so that only one object is in memory at a time: hands out the text of each
/// element of the member `items` of the outermost object and keeps the rest. It knows only as much JSON as that needs;
/// the inside of an element is not checked.
class ItemSplitter {
 public:
  using Item = std::function<void(const std::string& json)>;

  /// Throws BUDGET for an element of more than `max_bytes` bytes.
  ItemSplitter(Item item, std::size_t max_bytes) : item_(std::move(item)), max_bytes_(max_bytes) {}

  /// Takes the next bytes, cut anywhere. Calls `item` for each element that they complete.
  void feed(std::string_view piece);
  /// Returns all but the elements once everything has arrived: `{"metadata":{…},"items":[]}`. Throws CORRUPT if the
  /// text ended too early.
  const std::string& rest() const;

 private:
  void consume(char c);  ///< one byte, inside or outside of an element
  void consume_outside(char c);

  Item item_;
  std::size_t max_bytes_;
  std::string rest_, current_, key_;  ///< the text without elements, the element in progress, the last member name
  int depth_ = 0;                     ///< number of open objects and lists
  bool text_ = false, escaped_ = false, collects_key_ = false;
  bool items_ = false;  ///< inside the list `items`
};

/// Assembles lines: calls `line` with each line without its end, as soon as it is complete.
class LineSplitter {
 public:
  using Line = std::function<void(std::string_view)>;
  LineSplitter(Line line, std::size_t max_bytes) : line_(std::move(line)), max_bytes_(max_bytes) {}
  void feed(std::string_view piece);  ///< throws BUDGET for a line of more than `max_bytes` bytes

 private:
  Line line_;
  std::size_t max_bytes_;
  std::string held_;  ///< beginning of a line that is not complete
};

}  // namespace driftd::kube
