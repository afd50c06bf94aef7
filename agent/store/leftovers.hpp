// SPDX-License-Identifier: Apache-2.0
// What a store still holds for sinks and backends, for a configuration that may not name them any more. Blocks.
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
    std::int64_t pending = 0, dead = 0;  ///< events; at least one
  };
  struct Backend {
    std::string name;
    std::int64_t open_drifts = 0;  ///< at least one
    std::string finder;            ///< the backend that discovered it; empty: a configuration named it
  };
  std::vector<Sink> sinks;        ///< by name
  std::vector<Backend> backends;  ///< by name
};

/// Reads the store of `data_dir` without its lock and makes no file there: also beside a running agent, and as another
/// user. `not_found`: there is none; `unavailable`: it cannot be read, or is of another version of driftd; the message
/// says why.
Result<Leftovers> read_leftovers(const std::filesystem::path& data_dir);

}  // namespace driftd::store
