// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "driftd/sdk/types.hpp"

namespace driftd::k8s {

/// How long Helm may take for a revision; its own default time-out is five minutes.
inline constexpr std::chrono::minutes kInFlight{10};

/// Puts the revisions of Helm releases together, one Secret each, as they come; keeps one revision of a release.
class HelmReleases {
 public:
  /// A Secret of type helm.sh/release.v1. One that cannot be unpacked is told by `records`.
  void add(const nlohmann::json& secret);
  /// One record for each release: the highest deployed revision, or what there is of one that never was. A newer revision
  /// that became pending within kInFlight makes it unread; one that is pending for longer hides nothing and is told. Also
  /// unread, with its reason, is one that cannot be unpacked.
  std::vector<sdk::Record> records(std::vector<sdk::Diagnostic>& diagnostics, std::int64_t now_ns) const;

 private:
  struct Revision {
    std::uint64_t number = 0;
    std::string status, created;  ///< `created`: when the API server took the Secret, RFC 3339
  };
  struct Release {
    Revision last, shown;
    sdk::Record record;  ///< of `shown`
    std::string error;   ///< why it cannot be read
    driftd_status code = DRIFTD_CORRUPT;
  };
  static void show(Release& release, const Revision& revision, const nlohmann::json& secret);

  std::map<std::string, Release> releases_;  ///< by namespace/name
};

/// The id of the release that a Secret is a revision of; empty: it is none.
std::string release_of(const nlohmann::json& secret);

}  // namespace driftd::k8s
