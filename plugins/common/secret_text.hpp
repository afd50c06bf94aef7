// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driftd/sdk/secret_text.hpp"

namespace driftd::common {

/// Returns true for a private key or a URL with a password. The rule is shared with the agent (sdk/secret_text.hpp).
using sdk::holds_secret;

}  // namespace driftd::common
