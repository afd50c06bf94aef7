// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "driftd/sdk/extensions.hpp"
#include "postgres/client.hpp"
#include "postgres/reader.hpp"

namespace driftd::postgres {

/// Puts attributes of a `setting`, `role` or `database` back, as driftd/ext/apply.h says. Reads through `client` and
/// writes on a connection of its own. `reader` was made for the kind of the request. Throws NOT_FOUND, CONFLICT,
/// INVALID, and what connecting and reading throw.
sdk::Applied apply(sdk::Call& call, Client& client, Reader& reader, const Settings& settings,
                   const sdk::Apply& request);

/// Returns SUCCESS if what an earlier call wrote is in force now, nullopt if it is still awaited. Throws NOT_FOUND, and
/// CONFLICT if the value is another one.
std::optional<sdk::Applied> settled(Reader& reader, const sdk::Apply& request);

}  // namespace driftd::postgres
