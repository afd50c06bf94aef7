// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driftd/sdk/secret_text.hpp"

namespace driftd::common {

using sdk::holds_secret;

}  // namespace driftd::common
