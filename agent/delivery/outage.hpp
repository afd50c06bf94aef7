// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "delivery/schedule.hpp"

namespace driftd::delivery {

/// Measures how long an endpoint has only failed while this agent ran and tried. Time in which the machine was off or
/// asleep does not count, nor do changes of the clock. A note in the sink's cursor lets the measurement continue after
/// a restart. Not thread-safe.
class Outage {
 public:
  /// Continues from the note in `notes`.
  void restore(std::map<std::string, std::string>& notes);
  /// An attempt failed now. Rewrites the note once ten more minutes have passed.
  void failed(Time now, std::map<std::string, std::string>& notes);
  /// An attempt succeeded: ends the outage.
  void over(std::map<std::string, std::string>& notes);
  Millis lasted() const { return lasted_; }  ///< 0 if there is no outage

 private:
  std::optional<Time> last_;     ///< time of the last failure in this process
  Millis lasted_{0}, noted_{0};  ///< so far; as it was when the note was last written
};

}  // namespace driftd::delivery
