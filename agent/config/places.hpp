// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "config/yaml.hpp"

namespace driftd::config {

/// Returns the position of each setting of a file, down to the keys of a backend and to each sink: `agent.drain`,
/// `backends.orders-kafka.interval`, `defaults.interval`, `sinks.ops`. `node` is this agent's node, which is part of
/// the name of a backend that several nodes run.
std::map<std::string, Position> setting_positions(const Node& root, const std::string& node);

/// Returns the position of a setting. If the file lacks it, returns that of its default (`defaults`), else that of its
/// parent. Line 0 if the file has none of them.
Position find_position(const std::map<std::string, Position>& places, const std::string& setting);

}  // namespace driftd::config
