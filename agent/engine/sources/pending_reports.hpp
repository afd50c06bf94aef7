// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/sources/source_hub.hpp"

namespace driftd::engine {

/// Reports about backends that are not registered yet, the last of each speaker: the next discovery may register them.
/// Of each source 10,000 and 64 MiB have room, 16 of one backend, so that none takes another's. Core thread only.
class PendingReports {
 public:
  /// Why it is not kept; empty: it is.
  std::string try_add(RegistrationReport report);
  /// What was said of a backend that is registered now.
  std::vector<RegistrationReport> extract(const std::string& backend);
  /// The source listed all that it says: what it said before that list and not in it is over.
  void listed(const std::string& source);

 private:
  struct PendingReport {
    RegistrationReport report;
    std::uint64_t list = 0;  ///< of its source, in which it was said
  };
  struct Usage {
    std::size_t reports = 0, bytes = 0;
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
