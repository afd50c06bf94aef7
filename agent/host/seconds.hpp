// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace driftd::host {

/// Renders a time for people, in tenths of a second from one second up: `1.5 s`, `250 ms`.
std::string render_seconds(std::chrono::milliseconds t);

}  // namespace driftd::host
