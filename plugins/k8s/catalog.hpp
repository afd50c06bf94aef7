// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "k8s/api.hpp"
#include "k8s/kinds.hpp"

namespace driftd::k8s {

/// Which resource types there are to read: the known ones, PrismBackend and those of the settings where the server
/// serves them. Thread-safe.
class Catalog {
 public:
  Catalog(Api& api, const Settings& settings) : api_(api), settings_(settings), known_(known_resources(settings)) {}

  struct Answer {
    std::vector<Resource> resources;
    std::vector<sdk::Diagnostic> diagnostics;  ///< types that are not served (UNSUPPORTED) or could not be asked about

    /// Every type could be asked about.
    bool knows_all() const {
      for (const auto& each : diagnostics) {
        if (each.code != DRIFTD_UNSUPPORTED) return false;
      }
      return true;
    }
  };
  /// What is served now, as of at most a minute ago. Failures of the connection are thrown.
  Answer served_types(sdk::Call& call, http::Client& client);

 private:
  void add_custom(sdk::Call& call, http::Client& client, const Custom& custom, const std::string& kind, Answer& out);

  Api& api_;
  const Settings& settings_;
  const std::vector<Resource> known_;
  const Custom prism_{settings_.group, {}, "PrismBackend", {}};
  std::mutex mutex_;
  Answer cached_;
  std::chrono::steady_clock::time_point at_{};
};

}  // namespace driftd::k8s
