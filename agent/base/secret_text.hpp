// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driftd/sdk/secret_text.hpp"

namespace driftd {

// The rule is shared with providers (sdk/secret_text.hpp).
using sdk::holds_secret;
using sdk::may_hold_secret;
using sdk::without_credentials;

}  // namespace driftd
