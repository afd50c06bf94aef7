// SPDX-License-Identifier: Apache-2.0
#include "app/store.hpp"

namespace driftd::app {

std::vector<std::string> sinks_of(const std::vector<core::Route>& routes, const core::AgentEvent& event) {
  return core::resolve_routes(routes, "agent." + event.what, event.backend, std::nullopt, {});
}

store::Settings store_settings(const config::Config& config) {
  store::Settings out;
  out.data_dir = config.agent.data_dir;
  out.agent = config.agent.name;
  out.cluster = config.agent.cluster;
  out.audit = config.retention.audit;
  out.history = config.retention.audit;
  out.route = [routes = config.routes](const core::AgentEvent& event) { return sinks_of(routes, event); };
  return out;
}

}  // namespace driftd::app
