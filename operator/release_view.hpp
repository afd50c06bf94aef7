// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "controller/key.hpp"
#include "operator/helm_charts.hpp"

namespace driftd::op {

/// The Helm releases of the cluster, as their Secrets say. Of a release's values only what names its parts is kept:
/// others may be passwords. Any thread.
class ReleaseView {
 public:
  /// Takes a Secret of type helm.sh/release.v1, or its deletion. Returns the key of its release (namespace and name);
  /// nullopt if it belongs to none. A revision that cannot be unpacked is logged; the one before it counts.
  std::optional<controller::Key> observe(const nlohmann::json& secret, bool deleted);
  /// Returns the release as it was deployed last; nullopt if it does not exist or never was.
  std::optional<Release> find(const controller::Key& key) const;
  /// Returns true if the release exists, and no revision of it that was deployed could be unpacked.
  bool is_unreadable(const controller::Key& key) const;
  std::vector<controller::Key> keys() const;

 private:
  struct Revision {
    std::uint64_t number = 0;
    std::string status;
    std::optional<Release> release;  ///< of a revision that is or was deployed
  };
  mutable std::mutex mutex_;
  std::map<controller::Key, std::map<std::string, Revision>> releases_;  ///< by release, then by the Secret's name
};

}  // namespace driftd::op
