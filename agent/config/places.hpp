// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "config/yaml.hpp"

namespace driftd::config {

/// Where each setting of a file stands, down to the keys of one backend and to one sink: `agent.drain`,
/// `backends.orders-kafka.interval`, `defaults.interval`, `sinks.ops`. `node`: of this agent, which is part of the name
/// of a backend that several run.
std::map<std::string, Position> setting_positions(const Node& root, const std::string& node);

/// The place of a setting; where the file does not have it that of what it is taken from (`defaults`), else of what it
/// belongs to; `line` 0: of nothing.
Position find_position(const std::map<std::string, Position>& places, const std::string& setting);

}  // namespace driftd::config
