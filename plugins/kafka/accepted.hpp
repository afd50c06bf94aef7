// SPDX-License-Identifier: Apache-2.0
// What is answered after the controller has accepted values that the brokers show only later. Pure.
#pragma once

#include <functional>
#include <optional>

#include "common/apply_steps.hpp"

namespace driftd::kafka {

/// Returns `done`, a SUCCESS, with `changed`, if `shown` says that the brokers show the values, else REQUEUE_AFTER. The
/// key remembers which of them it was, also if `shown` throws.
sdk::Applied answer_accepted(common::AppliedRequests& keys, const sdk::Apply& request, sdk::Applied done,
                             const std::function<bool()>& shown);

/// Returns the answer to a request whose key is known, nullopt if it is not. `now` is the resource as it is: what was
/// only accepted is REQUEUE_AFTER until it shows every value. Throws CONFLICT if it then shows another one, INVALID if
/// the key was used for another change.
std::optional<sdk::Applied> answer_repeated(common::AppliedRequests& keys, const sdk::Apply& request,
                                            const sdk::Record& now);

}  // namespace driftd::kafka
