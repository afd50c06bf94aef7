// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sinks/common/marks.hpp"

namespace driftd::sinks {

/// Where the partitions of a topic have our records: for each partition its last acknowledged record and older
/// promises. They are kept in the cursor's notes. A promise of a partition covers the events that went to it. Core
/// thread.
class Positions {
 public:
  /// Sets the number of partitions, which bounds the promises that are kept for each.
  void resize(int partitions);
  /// Notes that a partition has the record of event number `event` (0: a replay). Returns false if a partition that
  /// kept its records could not answer this: an offset at or below an earlier one.
  bool acked(std::int32_t partition, std::int64_t offset, const std::string& id, std::int64_t event);
  /// Notes that every event up to `settled_to` was acknowledged.
  void promise(std::int64_t settled_to);
  /// Forgets all but the oldest `count` promises of a partition.
  void keep_oldest(std::int32_t partition, std::size_t count);

  const std::map<std::int32_t, Marks>& all() const { return marks_; }
  std::string render() const;
  void parse(const std::string& text);

 private:
  Marks& of(std::int32_t partition);

  std::size_t marks_each_ = Marks::kMaxMarks;
  std::map<std::int32_t, Marks> marks_;
};

}  // namespace driftd::sinks
