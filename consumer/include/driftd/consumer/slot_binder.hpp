// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "driftd/consumer/credentials.hpp"
#include "driftd/consumer/slot.hpp"

namespace driftd::consumer {

class BackendCache;

/// A connection and what it was made with.
struct BoundSlot {
  std::shared_ptr<Slot> slot;
  SlotConfig config;
};

/// Makes connections: description from the cache or the source, credentials from the resolvers, connection from the
/// application's factory. Any thread. Keeps references to what it was made of.
class SlotBinder {
 public:
  /// Changes a description that the source gave, for example its endpoint.
  using Amend = std::function<void(Backend&)>;

  SlotBinder(BackendCache& cache, const Resolvers& resolvers, SlotFactory& factory, Amend amend,
             std::chrono::milliseconds resolve_timeout);
  /// Binds a slot to a backend, once. The error begins with `failed to bind slot <slot>`.
  Result<BoundSlot> bind_slot(const std::string& slot, const std::string& backend, const std::string& slot_type);
  /// Returns what bind_slot() would connect with now.
  Result<SlotConfig> config_of(const std::string& slot, const std::string& backend);

 private:
  BackendCache& cache_;
  const Resolvers& resolvers_;
  SlotFactory& factory_;
  Amend amend_;
  std::chrono::milliseconds resolve_timeout_;
};

}  // namespace driftd::consumer
