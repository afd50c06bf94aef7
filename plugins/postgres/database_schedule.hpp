// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace driftd::postgres {

/// Whose turn it is among the databases of a server, where all of them together may take longer than a cycle has. Those
/// that are cheap to read come before those that are not, so that nobody's databases keep the others' from being read;
/// among both who waited longest is first, so that nobody waits for ever. Any thread.
class DatabaseSchedule {
 public:
  using Cost = std::chrono::nanoseconds;
  struct Order {
    std::vector<std::string> names;
    std::size_t cheap = 0;  ///< so many of them come before the dear ones
  };

  /// The order for now; what is not in `names` is forgotten. Cheap: the last turn took no more than `share`, or there
  /// was none yet.
  Order order(const std::vector<std::string>& names, Cost share);
  /// It had its turn. Who is left out says nothing, and so keeps its place.
  void record(const std::string& name, Cost cost);

 private:
  struct Last {
    std::uint64_t turn = 0;
    Cost cost{0};
  };
  std::mutex mutex_;
  std::uint64_t turn_ = 0;
  std::map<std::string, Last> last_;
};

}  // namespace driftd::postgres
