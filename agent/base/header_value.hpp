// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace driftd {

/// Returns the value of a header of CloudEvents' HTTP and NATS bindings: space, `"`, `%` and everything but printable
/// ASCII as %XX. [any thread]
std::string header_value(std::string_view value);

}  // namespace driftd
