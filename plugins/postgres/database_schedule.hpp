// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace driftd::postgres {

/// Decides in which order the databases of a server are read if all of them take longer than a cycle has. Cheap
/// databases come before expensive ones, so that the databases of one owner cannot keep those of others from being
/// read; within both groups the one that has waited longest comes first, so that each is read eventually. Thread-safe.
class DatabaseSchedule {
 public:
  using Cost = std::chrono::nanoseconds;
  struct Order {
    std::vector<std::string> names;
    std::size_t cheap = 0;  ///< the first `cheap` names are cheap ones
  };

  /// Returns the order for now and forgets databases that are not in `names`. A database is cheap if its last reading
  /// took at most `share`, or if it was never read.
  Order order(const std::vector<std::string>& names, Cost share);
  /// Records that a database was read. One that is not recorded keeps its place.
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
