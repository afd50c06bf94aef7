// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/clock.hpp"

namespace driftd::core {

struct Drift;

/// No notification is sent about drifts that it matches, until it expires. The drifts stay in the queue.
struct Silence {
  std::string id;                        ///< `s-` and 12 hex digits
  std::string backend, kind, name, cls;  ///< globs; empty matches everything
  std::string author, reason;
  Nanos created_ns = 0, expires_ns = 0;
  bool matches(const std::string& of_backend, const Drift& drift) const;
};

}  // namespace driftd::core
