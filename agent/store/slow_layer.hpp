// SPDX-License-Identifier: Apache-2.0
// A slow layer that comes around all that a store holds (ADR 0014): 50 ms a digest, so it is said before and done by
// threads.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/redact.hpp"
#include "store/sqlite.hpp"

namespace driftd::store {

/// What a slow layer costs a store; `digests` 0: none is to be put around anything.
struct SlowWork {
  std::size_t digests = 0;
  std::chrono::milliseconds time{};
  std::size_t threads = 1;
};
using SaySlowWork = std::function<void(const SlowWork&)>;

/// Makes digests with the slow layers that they lack, on threads of its own, so that core::rewrap() finds them made.
class SlowLayer {
 public:
  SlowLayer(Connection& db, const core::RedactionKeys& keys);
  /// Distinct digests of the store, and the time as one that is made now takes it.
  Result<SlowWork> work() const;
  /// Those in the text columns that `sql` selects; its parameters ?1 and ?2 are `first` and `last`.
  Status make(std::string_view sql, std::int64_t first, std::int64_t last) const;

 private:
  /// Adds each digest in `text` that lacks a slow layer, as it stands there: `<key id>:<revision>:<64 hex>`.
  void collect(std::string_view text, std::set<std::string>& out) const;
  Status make(const std::set<std::string>& digests) const;

  Connection& db_;
  const core::RedactionKeys keys_;
  std::vector<std::string> lacking_;  ///< key ids of digests that a slow layer is to come around
  std::size_t threads_ = 1;
};

}  // namespace driftd::store
