// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driftd/sdk/secret_text.hpp"

namespace driftd {

// The agent's name for the rule that providers share (sdk/secret_text.hpp).
using sdk::holds_secret;
using sdk::may_hold_secret;
using sdk::without_credentials;

}  // namespace driftd
