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

/// What the releases of one namespace may unpack to before the others of it are passed over, what Secrets may wait
/// packed, and what all that is kept of releases may take: beyond it the namespace that has most gives its largest.
inline constexpr std::size_t kMostUnpacked = 64u << 20, kMostWaiting = 8u << 20, kMostKept = 128u << 20;

/// Puts the revisions of Helm releases together, one Secret each, as they come; unpacks, unless there are too many at
/// once, only the one of each release that is shown.
class HelmReleases {
 public:
  /// A Secret of type helm.sh/release.v1. One that cannot be unpacked is told by `records`.
  void add(const nlohmann::json& secret);
  /// One record for each release: the highest deployed revision, or what there is of one that never was. A newer
  /// revision that became pending within kInFlight makes it unread; one that is pending for longer hides nothing and is
  /// told. Also unread, with its reason, is one that cannot be unpacked, or that has no room beside the others of its
  /// namespace.
  std::vector<sdk::Record> records(std::vector<sdk::Diagnostic>& diagnostics, std::int64_t now_ns);

 private:
  struct Revision {
    std::uint64_t number = 0;
    std::string status, created;  ///< `created`: when the API server took the Secret, RFC 3339
  };
  struct Release {
    Revision last, shown;
    std::string packed;    ///< of `shown`: its Secret's `release`, until it is unpacked
    sdk::Record record;    ///< of `shown`
    std::string error;     ///< why it cannot be read
    std::size_t kept = 0;  ///< bytes of its body that are counted
    bool waits = false;    ///< to be unpacked
    driftd_status code = DRIFTD_CORRUPT;
  };
  void show(Release& release, const Revision& revision, const nlohmann::json& secret);
  void unpack_all();
  void unpack(Release& release);
  void keep(Release& release, const std::string& name_space, std::size_t bytes);
  void make_room();

  std::map<std::string, Release> releases_;      ///< by namespace/name
  std::map<std::string, std::size_t> unpacked_;  ///< bytes, by namespace
  std::map<std::string, std::size_t> kept_by_;   ///< bytes of bodies, by namespace
  std::size_t waiting_ = 0, kept_ = 0;           ///< bytes of all `packed`, of all bodies
};

/// The id of the release that a Secret is a revision of; empty: it is none.
std::string release_id(const nlohmann::json& secret);

}  // namespace driftd::k8s
