// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "kube/object_client.hpp"
#include "operator/lease.hpp"

namespace driftd::op {

/// Holds the Lease that lets one of several operators act. It blocks the thread that calls it.
class Leader {
 public:
  /// `api` must outlive it. The Lease is `name` in the namespace `space`.
  Leader(kube::Api& api, kube::Place lease, std::string identity, LeaseTimes times);

  /// Returns true as soon as this process leads; false if `stop` was requested.
  bool acquire(std::stop_token stop);
  /// Renews until `stop` is requested, and returns true. Returns false as soon as this process may not act any more: it
  /// was not able to renew, or another one has the lease. The process must end at once then.
  bool hold(std::stop_token stop);
  /// Gives the lease up, so that the next one need not wait for its end. Call it when nothing is written any more.
  void release();
  std::string holder() const;  ///< as last read. Any thread

 private:
  enum class Attempt { leads, follows, failed };
  Attempt attempt(std::stop_token stop);
  bool wait(std::stop_token stop);  ///< false: stop was requested

  kube::Api& api_;
  const kube::Place place_;
  const std::string identity_;
  const LeaseTimes times_;
  Election election_;
  std::optional<kube::ObjectClient> client_;
  nlohmann::json last_;  ///< the Lease as it was stored last
  std::string fault_;    ///< that was logged last
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::string holder_;  ///< guarded by mutex_
};

}  // namespace driftd::op
