// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "driftd/consumer/pattern_runner.hpp"

namespace driftd::consumer {

/// Returns `invalid` for the first setting that cannot work, by its name.
Status check_settings(const RunnerSettings& settings);

/// The durable consumer's name: what a name must not have is replaced, and a digest of the exact names keeps two apart.
std::string durable_name(const std::string& pattern, const std::string& instance, const std::string& backend);

}  // namespace driftd::consumer
