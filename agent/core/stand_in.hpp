// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/resource.hpp"

namespace driftd::core {

/// What the id begins with that the host gives to a record whose own cannot be taken. No plugin can give it to another
/// one.
inline constexpr std::string_view kStandIn = "~unidentified~";

/// True: no read can find it, as its provider never gave it this id. Only a complete list tells that it is gone.
inline bool is_stand_in(const ResourceId& id) { return id.id.starts_with(kStandIn); }

}  // namespace driftd::core
