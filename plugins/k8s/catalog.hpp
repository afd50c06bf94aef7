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

/// The resource types to read: the known ones, and PrismBackend and those of the settings if the server serves them.
/// Thread-safe.
class Catalog {
 public:
  Catalog(Api& api, const Settings& settings) : api_(api), settings_(settings), known_(known_resources(settings)) {}

  /// The types that are served, and what is known of the others.
  struct Answer {
    std::vector<Resource> resources;
    std::vector<sdk::Diagnostic> diagnostics;  ///< types that are not served (UNSUPPORTED) or could not be checked

    /// Returns true if every type could be checked.
    bool knows_all() const {
      for (const auto& each : diagnostics) {
        if (each.code != DRIFTD_UNSUPPORTED) return false;
      }
      return true;
    }
  };
  /// Returns the types that are served, at most one minute old. Throws if the connection fails.
  Answer served_types(sdk::Call& call, http::Client& client);

 private:
  void add_custom(sdk::Call& call, http::Client& client, const Custom& custom, const std::string& kind, Answer& out);

  Api& api_;
  const Settings& settings_;
  const std::vector<Resource> known_;
  const Custom prism_{settings_.group, {}, "PrismBackend", {}};
  std::mutex mutex_;  ///< guards `cached_` and `at_`
  Answer cached_;
  std::chrono::steady_clock::time_point at_{};  ///< when `cached_` was asked for
};

}  // namespace driftd::k8s
