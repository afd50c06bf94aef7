// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "driftd/sdk/types.hpp"

namespace driftd::k8s {

/// How long a Helm revision may stay pending; Helm's own default time-out is five minutes.
inline constexpr std::chrono::minutes kInFlight{10};

/// Limits in bytes: unpacked releases of one namespace (further ones are skipped), packed Secrets that wait, and all
/// kept bodies together (above it the namespace with the most bytes loses its largest release).
inline constexpr std::size_t kMaxUnpacked = 64u << 20, kMaxWaiting = 8u << 20, kMaxKept = 128u << 20;

/// Collects the revisions of Helm releases, one Secret each, as they arrive. Unpacks only the shown revision of each
/// release, unless too many wait at once.
class HelmReleases {
 public:
  /// Adds a Secret of type helm.sh/release.v1. If it cannot be unpacked, records() reports that.
  void add(const nlohmann::json& secret);
  /// Returns one record for each release: its highest deployed revision, or what exists of a release that was never
  /// deployed. The record is unread while a newer revision has been pending for less than kInFlight; one that is
  /// pending for longer hides nothing and is reported. A release that cannot be unpacked, or that has no room beside
  /// the others of its namespace, is also unread, with the reason.
  std::vector<sdk::Record> records(std::vector<sdk::Diagnostic>& diagnostics, std::int64_t now_ns);

 private:
  struct Revision {
    std::uint64_t number = 0;     ///< of the revision
    std::string status, created;  ///< `created`: creation time of the Secret, RFC 3339
  };
  struct Release {
    Revision last, shown;  ///< the highest one, and the one that is the record
    std::string packed;    ///< of `shown`: its Secret's `release`, until it is unpacked
    sdk::Record record;    ///< of `shown`
    std::string error;     ///< why it cannot be read; empty: it can
    std::size_t kept = 0;  ///< bytes of the body as counted in kept_
    bool waits = false;    ///< it waits to be unpacked
    driftd_status code = DRIFTD_CORRUPT;
  };
  /// Makes this revision the shown one.
  void show(Release& release, const Revision& revision, const nlohmann::json& secret);
  void unpack_all();  ///< what waits
  void unpack(Release& release);
  /// Sets the bytes for which this release counts, in its namespace and in all together.
  void keep(Release& release, const std::string& name_space, std::size_t bytes);
  void make_room();  ///< until all bodies together are within kMaxKept

  std::map<std::string, Release> releases_;      ///< by namespace/name
  std::map<std::string, std::size_t> unpacked_;  ///< bytes, by namespace
  std::map<std::string, std::size_t> kept_by_;   ///< bytes of bodies, by namespace
  std::size_t waiting_ = 0, kept_ = 0;           ///< bytes of all `packed`, of all bodies
};

/// Returns the id of the release that a Secret belongs to; empty if it belongs to none.
std::string release_id(const nlohmann::json& secret);

}  // namespace driftd::k8s
