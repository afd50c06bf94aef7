// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/digest.hpp"
#include "base/result.hpp"

namespace driftd::core {

/// A cache of slow digests. Its keys (`input`) are the SHA-256 of the inputs, so neither values nor stored digests can
/// be read from it. It is limited: entries that were not used while half of the maximum was added are dropped. Any
/// thread.
class SlowDigests {
 public:
  using Bytes = std::array<std::uint8_t, 32>;
  explicit SlowDigests(std::size_t max_entries) : half_(max_entries / 2) {}
  std::optional<Bytes> find(const Bytes& input);
  void put(const Bytes& input, const Bytes& digest);
  std::size_t size() const;

 private:
  struct Hash {
    std::size_t operator()(const Bytes& input) const;
  };
  using Map = std::unordered_map<Bytes, Bytes, Hash>;
  void put_young(const Bytes& input, const Bytes& digest);

  const std::size_t half_;
  mutable std::mutex mutex_;
  Map young_, old_;  ///< old_ is dropped when young_ is full; what is found in it moves to young_
};

/// Returns the digest `hex` with a slow layer around it (ADR 0014), 64 hex. Takes 50 ms if this process has not
/// computed it yet, so it must not be called on the core thread. Errors are those of slow_hash().
Result<std::string> slow_hex(const Key& layer, const std::string& hex);

}  // namespace driftd::core
