// SPDX-License-Identifier: Apache-2.0
#include "keycloak/mapping.hpp"

namespace driftd::keycloak {
namespace {

using nlohmann::json;

/// An execution without its ids and without what Keycloak only shows for its console.
json execution(const json& from, const std::map<std::string, json>& configs) {
  json out = json::object();
  for (const char* name : {"requirement", "level", "index", "priority", "providerId", "authenticationFlow", "alias"}) {
    if (from.contains(name)) out[name] = from[name];
  }
  const bool is_flow = from.contains("authenticationFlow") && from["authenticationFlow"] == true;
  if (is_flow) out["flow"] = text_of(from, "displayName");  // its alias
  const auto config = configs.find(text_of(from, "authenticationConfig"));
  if (config == configs.end()) return out;
  out["config"] = config->second.value("config", json::object());
  out["configAlias"] = text_of(config->second, "alias");
  return out;
}

}  // namespace

sdk::Record flow_record(const Place& place, json flow, const json& executions,
                        const std::map<std::string, json>& configs) {
  const std::string uuid = text_of(flow, "id"), alias = text_of(flow, "alias");
  flow.erase("id");
  flow.erase("authenticationExecutions");  // the whole tree follows, in its order
  json tree = json::array();
  for (const auto& each : executions) tree.push_back(execution(each, configs));
  flow["executions"] = std::move(tree);
  sdk::Record out = detail::finish(place, "authentication_flow", {alias}, std::move(flow), json::object());
  out.external_name = uuid;
  return out;
}

}  // namespace driftd::keycloak
