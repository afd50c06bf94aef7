// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "delivery/schedule.hpp"

namespace driftd::delivery {

/// How long an endpoint did nothing but fail while this agent ran and tried: a machine that was off or asleep does not
/// count, nor does a clock that is set. It goes on where it was after a restart, by a note of the sink's cursor. Not
/// thread-safe.
class Outage {
 public:
  /// Takes up what `notes` says.
  void restore(std::map<std::string, std::string>& notes);
  /// An attempt failed now. The note is written anew when ten more minutes are in it.
  void failed(Time now, std::map<std::string, std::string>& notes);
  /// An attempt got through.
  void over(std::map<std::string, std::string>& notes);
  Millis lasted() const { return lasted_; }

 private:
  std::optional<Time> last_;  ///< failure of this process
  Millis lasted_{0}, noted_{0};
};

}  // namespace driftd::delivery
