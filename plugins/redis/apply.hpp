// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "driftd/sdk/extensions.hpp"
#include "redis/deployment.hpp"

namespace driftd::redis {

/// Puts attributes of `server` or an `acl_user` back, as driftd/ext/apply.h says. `deployment` must have connections of
/// its own: one on which an answer was lost must not be used again. `known` are the directives that the schema names.
/// Throws NOT_FOUND, CONFLICT, INVALID, and what connecting and reading throw.
sdk::Applied apply(sdk::Call& call, Deployment& deployment, const Settings& settings,
                   const std::vector<std::string>& known, const sdk::Apply& request);

}  // namespace driftd::redis
