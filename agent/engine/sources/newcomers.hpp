// SPDX-License-Identifier: Apache-2.0
// What the engine knows of backends that a source discovered (engine_discovery.cpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/store.hpp"

namespace driftd::engine {

/// A backend that a source discovered.
struct DiscoveredBackend {
  std::string source_uid;  ///< uid of the source that discovered it
  int misses = 0;          ///< complete discoveries in a row that did not name it, at least an interval apart
  std::chrono::steady_clock::time_point missed_at{};  ///< of the last miss
};

/// What one discovery needs to register backends. It is read and counted once, because there may be thousands.
struct Newcomers {
  std::string uid;                                    ///< uid of the source
  std::size_t known = 0;                              ///< backends registered for this source
  std::map<std::string, std::size_t> known_in;        ///< the same for each namespace
  std::optional<std::vector<core::BackendRow>> rows;  ///< all rows by age, read when the first new backend needs them
};

}  // namespace driftd::engine
