// SPDX-License-Identifier: Apache-2.0
// Makes large values presentable without parsing them into a tree.
#pragma once

#include <string>
#include <string_view>

namespace driftd::core {

/// Replaces each digest in a valid JSON text, such as the store holds, by "[REDACTED]" and changes nothing else. Like
/// presentable_json(), but without parsing, so that megabytes take milliseconds. [any thread]
std::string presentable_text(std::string_view json);

}  // namespace driftd::core
