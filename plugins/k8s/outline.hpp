// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "common/bounded_json.hpp"

namespace driftd::k8s {

/// An object of the API, or an event of a watch that holds one. Of one with too many values there is what says which
/// object it is: its metadata without who owns which field, and the members that are no containers; then it is cut.
/// Pure.
common::BoundedJson parse_object(std::string_view text);

}  // namespace driftd::k8s
