// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "driftd/sdk/types.hpp"

namespace driftd::k8s {

/// Puts the revisions of Helm releases together, one Secret each, as they come; keeps one revision of a release.
class HelmReleases {
 public:
  /// A Secret of type helm.sh/release.v1. One that cannot be unpacked is told by `records`.
  void add(const nlohmann::json& secret);
  /// One record for each release: the highest deployed revision, or what there is of one that never was; a newer
  /// revision that is still pending makes it unread. `diagnostics` gets the releases that could not be unpacked.
  std::vector<sdk::Record> records(std::vector<sdk::Diagnostic>& diagnostics) const;

 private:
  struct Revision {
    std::uint64_t number = 0;
    std::string status;
  };
  struct Release {
    Revision last, shown;
    std::optional<sdk::Record> record;  ///< of `shown`
    std::string error;                  ///< why it cannot be read
    driftd_status code = DRIFTD_CORRUPT;
  };
  static void show(Release& release, const Revision& revision, const nlohmann::json& secret);

  std::map<std::string, Release> releases_;  ///< by namespace/name
};

/// The id of the release that a Secret is a revision of; empty: it is none.
std::string release_of(const nlohmann::json& secret);

}  // namespace driftd::k8s
