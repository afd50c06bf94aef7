// SPDX-License-Identifier: Apache-2.0
#include "engine/cycle_report.hpp"

#include <algorithm>

namespace driftd::engine {

bool CycleReport::complete() const {
  return status.has_value() && std::all_of(coverage.begin(), coverage.end(), [](const auto& c) {
           return c.complete || core::coverage_state(c) == "unsupported";
         });
}

}  // namespace driftd::engine
