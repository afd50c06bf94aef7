// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.hpp"
#include "config/section.hpp"

namespace driftd::config {

/// parse() with the report kept: which keys were asked for, so that a test holds json_schema() against it.
Loaded parse_reported(std::string_view text, const LoadOptions& options, Report& report);

}  // namespace driftd::config
