// SPDX-License-Identifier: Apache-2.0
// Large values for a list: made presentable without a tree of them.
#pragma once

#include <string>
#include <string_view>

namespace driftd::core {

/// presentable_json() of a text that is JSON, such as the store holds: each digest becomes "[REDACTED]", the rest stays
/// as it stands. A pass over the text, so that a value of megabytes costs milliseconds. [any thread]
std::string presentable_text(std::string_view json);

}  // namespace driftd::core
