// SPDX-License-Identifier: Apache-2.0
#include "operator/client_pool.hpp"

#include "operator/types.hpp"

namespace driftd::op {
namespace {

/// A client keeps the certificate with which it was made; they are renewed long before they end.
constexpr std::chrono::minutes kMaxAge{5};

}  // namespace

std::unique_ptr<ClientPool::Entry> ClientPool::take(sdk::Call& call) {
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(idle_, [&](const auto& entry) { return now - entry->made > kMaxAge; });
    if (!idle_.empty()) {
      auto out = std::move(idle_.back());
      idle_.pop_back();
      return out;
    }
  }
  return std::unique_ptr<Entry>(new Entry{kube::ObjectClient(call, api_, kFieldManager), now});
}

void ClientPool::with(sdk::Call& call, const std::function<void(kube::ObjectClient&)>& use) {
  auto entry = take(call);
  use(entry->client);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(entry));
}

}  // namespace driftd::op
