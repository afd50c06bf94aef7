// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "config/config.hpp"
#include "config/section.hpp"

namespace driftd::config {

/// Returns the text of `key` in the section that `outer` names, with its secret reference resolved.
using NestedText = std::function<std::string(Section& section, std::string_view outer, std::string_view key)>;

/// Reads the keys of a sink of type kafka, and reports what is wrong with them at its position.
sinks::KafkaSettings read_kafka(Section& sink, const NestedText& secret);

}  // namespace driftd::config
