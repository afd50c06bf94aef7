// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/resource.hpp"

namespace driftd::core {

/// Prefix of the id that the host gives to a record whose own id is not usable. The host refuses a plugin's ids with
/// it.
inline constexpr std::string_view kStandIn = "~unidentified~";

/// Returns true if the host made this id. The provider does not know it, so no read can find the resource; only a
/// complete list can show that it is gone.
inline bool is_stand_in(const ResourceId& id) { return id.id.starts_with(kStandIn); }

}  // namespace driftd::core
