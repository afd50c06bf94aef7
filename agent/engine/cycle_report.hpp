// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "core/ports/control.hpp"
#include "engine/sources/foreign_kinds.hpp"

namespace driftd::engine {

/// Result of one cycle, beside the drifts that it committed.
struct CycleReport {
  Status status;           ///< why it is incomplete, if it is
  bool unchanged = false;  ///< the provider answered "nothing changed"
  /// They count the records, those that were settled by their digest, and the changes of drifts.
  std::uint64_t received = 0, settled = 0, transitions = 0;
  std::vector<core::Coverage> coverage;  ///< per kind; when unchanged, that of the last list
  RegistrationLines registrations;       ///< all coverage lines of kind `registration`
  std::chrono::milliseconds next{0};     ///< when the provider wants to be asked again; 0: it did not say
  bool complete() const;                 ///< true if every kind that this build and server support was listed whole
};

}  // namespace driftd::engine
