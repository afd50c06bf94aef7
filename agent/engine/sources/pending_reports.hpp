// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/sources/source_hub.hpp"

namespace driftd::engine {

/// Reports on backends that are not registered yet, because the next discovery may register them. Keeps the last report
/// of each registrar. A source may have 10,000 reports with 64 MiB in all, and 16 for one backend, so that no source
/// uses up the room of another. Core thread only.
class PendingReports {
 public:
  /// Keeps a report. Returns why it cannot; empty if it is kept.
  std::string try_add(RegistrationReport report);
  /// Removes and returns the reports on a backend, which is registered now.
  std::vector<RegistrationReport> extract(const std::string& backend);
  /// Call it after a complete list of the source: drops the reports that came before that list and are not in it.
  void listed(const std::string& source);

 private:
  struct PendingReport {
    RegistrationReport report;
    std::uint64_t list = 0;  ///< number of the source's list that contained it
  };
  struct Usage {
    std::size_t reports = 0, bytes = 0;  ///< that wait
    std::uint64_t list = 0;
  };
  using Reports = std::vector<PendingReport>;
  std::string no_room(const Reports& waiting, const RegistrationReport& report) const;
  template <class Over>
  void erase(Reports& waiting, Over over);

  std::map<std::string, Reports> waiting_;  ///< by backend
  std::map<std::string, Usage> usage_;      ///< by source
};

}  // namespace driftd::engine
