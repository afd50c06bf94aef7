// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
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
    /// A type of the settings was served before and is not now: its objects may come back.
    bool lost_type = false;

    /// Returns true if the objects of these types are all objects of the kind: a type that is not served has none.
    bool knows_all(const std::string& kind) const {
      for (const auto& each : diagnostics) {
        if (each.kind == kind && (each.code != DRIFTD_UNSUPPORTED || lost_type)) return false;
      }
      return true;
    }
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
  using Clock = std::chrono::steady_clock;

  /// What the OpenAPI document of one group and version says about lists.
  struct Document {
    std::shared_ptr<const ListTypes> lists;
    std::string reason;  ///< why it could not be read; `lists` is null then
    Clock::time_point at{};
  };
  void add_custom(sdk::Call& call, http::Client& client, const Custom& custom, const std::string& kind, Answer& out);
  /// Gives a custom type the meaning of its lists, or the reason why it is not known.
  void add_lists(sdk::Call& call, http::Client& client, const Custom& custom, Resource& to);
  /// Returns the document at `path` (`apis/example.org/v1`), at most ten minutes old. One that cannot be read is
  /// requested again by the next call.
  Document document(sdk::Call& call, http::Client& client, const std::string& path);

  Api& api_;
  const Settings& settings_;
  const std::vector<Resource> known_;
  const Custom prism_{settings_.group, {}, "PrismBackend", {}};
  const Custom gateway_{"gateway.networking.k8s.io", {}, "Gateway", {}};
  const Custom http_route_{"gateway.networking.k8s.io", {}, "HTTPRoute", {}};
  std::mutex mutex_;  ///< guards the members below
  Answer cached_;
  Clock::time_point at_{};                     ///< when `cached_` was asked for
  std::map<std::string, Document> documents_;  ///< by their path
  std::set<const Custom*> served_;             ///< types that were served at any time
};

}  // namespace driftd::k8s
