// SPDX-License-Identifier: Apache-2.0
// A slow layer around all digests of a store (ADR 0014). It takes 50 ms for each digest, so its cost is reported before
// and it runs on several threads.
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

/// The cost of slow layers for a store; `digests` is 0 if no digest needs one.
struct SlowWork {
  std::size_t digests = 0;
  std::chrono::milliseconds time{};
  std::size_t threads = 1;
};
using ReportSlowWork = std::function<void(const SlowWork&)>;

/// Computes the missing slow layers of digests, on threads of its own, so that core::rewrap() finds them ready.
class SlowLayer {
 public:
  SlowLayer(Connection& db, const core::RedactionKeys& keys);
  /// Returns the number of distinct digests of the store, and an estimate of the time from one that is computed now.
  Result<SlowWork> work() const;
  /// Computes the layers of the digests in the text columns that `sql` selects; its parameters ?1 and ?2 are `first`
  /// and `last`.
  Status make(std::string_view sql, std::int64_t first, std::int64_t last) const;

 private:
  /// Adds each digest in `text` that lacks a slow layer, as it is written there: `<key id>:<revision>:<64 hex>`.
  void collect(std::string_view text, std::set<std::string>& out) const;
  Status make(const std::set<std::string>& digests) const;

  Connection& db_;
  const core::RedactionKeys keys_;
  std::vector<std::string> lacking_;  ///< key ids of digests that need a slow layer
  std::size_t threads_ = 1;
};

}  // namespace driftd::store
