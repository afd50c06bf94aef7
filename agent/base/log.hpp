// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/logger.h>
#include <map>
#include <memory>
#include <string>

namespace driftd::log {

/// What the section `log:` of the configuration sets.
struct Settings {
  std::string level = "info";                ///< trace | debug | info | warn | error | off
  std::string format = "text";               ///< text | json, one line each, on stderr
  std::map<std::string, std::string> rooms;  ///< level per room: host, engine, store, delivery, admin, config ...
};

/// Sets level and format of all rooms, also of loggers that exist already. [any thread]
void configure(const Settings& settings);

/// Returns the logger of a room. It is created on first use and lives as long as the process. [any thread]
spdlog::logger& room(const std::string& name);

}  // namespace driftd::log
