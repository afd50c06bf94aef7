// SPDX-License-Identifier: Apache-2.0
// The wall clock as Kubernetes writes it.
#pragma once

#include <string>

namespace driftd::op {

std::string time_now();        ///< `Time`: `2026-11-27T06:40:00Z`
std::string micro_time_now();  ///< `MicroTime`: `2026-11-27T06:40:00.123456Z`

}  // namespace driftd::op
