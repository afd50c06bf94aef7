// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "common/bounded_json.hpp"

namespace driftd::kube {

/// Parses an object of the API, or a watch event that holds one. If it has too many values, only what identifies the
/// object is kept (metadata without managedFields, and scalar members), and the result is marked as cut. Pure.
common::BoundedJson parse_object(std::string_view text);

}  // namespace driftd::kube
