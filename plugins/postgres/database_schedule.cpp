// SPDX-License-Identifier: Apache-2.0
#include "postgres/database_schedule.hpp"

#include <algorithm>

namespace driftd::postgres {

DatabaseSchedule::Order DatabaseSchedule::order(const std::vector<std::string>& names, Cost share) {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Last> kept;
  for (const auto& name : names) {
    const auto known = last_.find(name);
    kept.emplace(name, known != last_.end() ? known->second : Last{++turn_, {}});  // who is new stands behind who waits
  }
  last_ = std::move(kept);
  Order out{names, 0};
  const auto dear = [&](const std::string& name) { return last_.at(name).cost > share; };
  std::sort(out.names.begin(), out.names.end(), [&](const std::string& a, const std::string& b) {
    return std::pair(dear(a), last_.at(a).turn) < std::pair(dear(b), last_.at(b).turn);
  });
  out.cheap = static_cast<std::size_t>(
      std::count_if(out.names.begin(), out.names.end(), [&](const auto& n) { return !dear(n); }));
  return out;
}

void DatabaseSchedule::record(const std::string& name, Cost cost) {
  const std::lock_guard lock(mutex_);
  last_[name] = {++turn_, cost};
}

}  // namespace driftd::postgres
