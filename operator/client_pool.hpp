// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "kube/object_client.hpp"

namespace driftd::op {

/// Clients of the API server that keep their connections, one for each thread that works at the same time. Any thread.
class ClientPool {
 public:
  explicit ClientPool(kube::Api& api) : api_(api) {}  ///< `api` must outlive it

  /// Calls `use` with a client. After an exception that client is not used again.
  void with(sdk::Call& call, const std::function<void(kube::ObjectClient&)>& use);

 private:
  struct Entry {
    kube::ObjectClient client;
    std::chrono::steady_clock::time_point made;
  };
  std::unique_ptr<Entry> take(sdk::Call& call);

  kube::Api& api_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Entry>> idle_;  ///< guarded by mutex_
};

}  // namespace driftd::op
