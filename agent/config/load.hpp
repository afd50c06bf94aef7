// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.hpp"
#include "config/section.hpp"

namespace driftd::config {

/// Does the same as parse() and fills `report`. A test compares the keys in it with json_schema().
Loaded parse_reported(std::string_view text, const LoadOptions& options, Report& report);

}  // namespace driftd::config
