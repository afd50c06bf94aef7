// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/config.hpp"
#include "secrets/credential_answers.hpp"

namespace driftd::app {

/// Returns the grants with their groups looked up. `not_found` names a group that does not exist.
/// May block as long as the name service does. [any thread]
Result<std::vector<secrets::CredentialGrant>> find_grants(const config::Resolve& settings);

}  // namespace driftd::app
