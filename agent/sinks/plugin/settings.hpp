// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "core/ports/session_spec.hpp"

namespace driftd::sinks {

/// Who decides how failed events are retried.
enum class PluginRetry {
  as_plugin,  ///< what its describe says
  forever,    ///< without end
  schedule    ///< as a webhook: ten attempts, then a dead letter
};

/// `type: plugin`. Secrets are clear text here and appear in no log or error.
struct PluginSettings {
  std::string plugin;                          ///< id of a sink plugin, or the absolute path of a .so
  std::string settings_json = "{}";            ///< its settings; secrets are tokens
  std::map<std::string, std::string> secrets;  ///< token → bytes
  std::chrono::milliseconds timeout{20'000};   ///< of one deliver
  std::size_t max_events = 0;                  ///< of a batch; 0: the plugin's maximum
  std::size_t max_calls = 0;                   ///< deliver calls at once; 0: the plugin's maximum
  PluginRetry retry = PluginRetry::as_plugin;
  core::Budgets budgets;  ///< rss, cpu, files and threads of the worker; the others are for providers
};

}  // namespace driftd::sinks
