// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace driftd::core {

/// One person's approval of a drift whose policy asks for several (`approvals: 2`).
struct Approval {
  std::string actor;
  std::string digest;  ///< Drift::digest that the person saw; for any other value the approval counts for nothing
  Nanos at_ns = 0;
  std::optional<Nanos> expires_ns;  ///< until when it waits for the others; absent: until the value moves
  friend bool operator==(const Approval&, const Approval&) = default;
};

/// What an approval replaced in the baseline, kept with the ended drift so that it can be undone.
struct FormerBaseline {
  /// Path and canonical JSON, absent where the baseline had nothing. The empty path is the whole body.
  std::vector<std::pair<std::string, std::optional<std::string>>> values;
  std::string external_name;
  std::uint32_t schema_revision = 1;  ///< of the baseline; another revision may name its paths otherwise
  std::string accepted;               ///< digest of what the approval wrote at these paths
  friend bool operator==(const FormerBaseline&, const FormerBaseline&) = default;
};

}  // namespace driftd::core
