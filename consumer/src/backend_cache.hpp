// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "driftd/consumer/backend.hpp"

namespace driftd::consumer {

/// Keeps what a source said until an event says that it changed. Fifty slots of one backend ask the source once. An
/// answer that was under way when the event came, or that is provisional, is not kept. Bounded by the number of slots
/// and their candidates. Any thread.
class BackendCache {
 public:
  explicit BackendCache(BackendSource& source) : source_(source) {}
  Result<Backend> get(const std::string& backend, const std::string& slot);
  void invalidate(const std::string& backend);
  void clear();

 private:
  using Key = std::pair<std::string, std::string>;  ///< backend and, if the source differs by slot, slot
  BackendSource& source_;
  std::mutex mutex_;
  std::condition_variable loaded_;
  std::map<Key, Backend> kept_;
  std::set<Key> loading_;
  std::uint64_t invalidations_ = 0;
};

}  // namespace driftd::consumer
