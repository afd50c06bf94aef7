// SPDX-License-Identifier: Apache-2.0
// What a store still holds for sinks and backends that a configuration may no longer name. Blocks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace driftd::store {

struct Leftovers {
  struct Sink {
    std::string name;
    std::int64_t pending = 0, dead = 0;  ///< numbers of events; at least one is not 0
  };
  struct Backend {
    std::string name;
    std::int64_t open_drifts = 0;  ///< at least one
    std::string finder;            ///< the backend that discovered it; empty if it came from a configuration
  };
  std::vector<Sink> sinks;        ///< by name
  std::vector<Backend> backends;  ///< by name
};

/// Reads the store of `data_dir` without its lock and without creating a file there, so also beside a running agent and
/// as another user. Returns `not_found` if there is none, and `unavailable`, with the reason, if it cannot be read or
/// belongs to another version of driftd.
Result<Leftovers> read_leftovers(const std::filesystem::path& data_dir);

}  // namespace driftd::store
