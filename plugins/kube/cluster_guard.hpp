// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "driftd/sdk/types.hpp"

namespace driftd::kube {

/// Makes sure that all records come from the accepted cluster (uid of kube-system). The endpoint may lead to another
/// cluster between the host's health check and any later connection; answers of that one are rejected. Thread-safe.
class ClusterGuard {
 public:
  /// Records the uid that health has reported to the host.
  void on_health(const std::string& uid);
  /// Begins a refresh. The host asks health before each one, so a cluster that made the last refresh fail and that
  /// health has reported since is accepted now. Returns true if existing connections may lead to another cluster.
  bool begin_refresh();
  /// Records that the refresh failed: the host asks health again before the next one.
  void refresh_failed();
  /// Records the cluster uid behind a new connection (empty: the caller has no right to read it). Throws UNAVAILABLE if
  /// it is not the accepted cluster, or if a known cluster no longer reveals its uid.
  void check_connection(const std::string& uid);
  /// Forgets the other cluster that was met, for a caller whose connections are all new: each of them is checked. The
  /// accepted cluster stays.
  void forget_other();
  /// Returns true if another cluster was met, and not forgotten since.
  bool has_met_other() const;
  /// Throws like check_connection() if another cluster was met or reported since.
  void check(const std::string& uid) const;
  /// Returns the uid of the accepted cluster; empty: not known.
  std::string uid() const;

 private:
  mutable std::mutex mutex_;  ///< guards the texts below; each is empty if there is none
  std::string known_;         ///< last uid that health reported
  std::string judged_;        ///< uid of the accepted cluster
  std::string refused_;       ///< uid that was met instead
  std::string asked_;         ///< refused_ at the time of the last failed refresh
};

}  // namespace driftd::kube
