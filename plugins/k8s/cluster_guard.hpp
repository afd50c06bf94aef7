// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "driftd/sdk/types.hpp"

namespace driftd::k8s {

/// Which cluster (uid of kube-system) the records are of. What another one answers is not told as its: the endpoint may
/// come to lead elsewhere between the host's question and any later connection. Thread-safe.
class ClusterGuard {
 public:
  /// What health just told the host.
  void on_health(const std::string& uid);
  /// A refresh begins. The host asks health before each: a cluster for which the last one failed, and that health told
  /// of since, is the one now. True: connections that there are may lead to another one.
  bool begin_refresh();
  /// The refresh failed: the host asks again before it comes back.
  void refresh_failed();
  /// Whom a new connection leads to; empty: it may not be known. UNAVAILABLE: not the one that the records are of, or
  /// one that does not say so.
  void check_connection(const std::string& uid);
  /// Throws as meet() does when another was met, or told, since.
  void check(const std::string& uid) const;
  /// The cluster of the records; empty: not known.
  std::string uid() const;

 private:
  mutable std::mutex mutex_;
  std::string known_;    ///< as health told it last
  std::string judged_;   ///< of the records
  std::string refused_;  ///< met instead
  std::string asked_;    ///< as refused_ was when a refresh failed
};

}  // namespace driftd::k8s
