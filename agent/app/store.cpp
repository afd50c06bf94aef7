// SPDX-License-Identifier: Apache-2.0
#include "app/store.hpp"

#include "config/places.hpp"

namespace driftd::app {

std::vector<std::string> agent_event_sinks(const std::vector<core::Route>& routes, const core::AgentEvent& event) {
  return core::resolve_routes(routes, "agent." + event.what, event.backend, std::nullopt, {});
}

Result<std::optional<store::GivenKey>> given_key(const config::Config& config) {
  const auto& agent = config.agent;
  if (agent.installation_key.empty()) return std::optional<store::GivenKey>();
  const auto at = config::find_position(config.places, "agent.installation_key");
  auto key = store::parse_key(agent.installation_key, agent.installation_key_from);
  if (key) {
    std::string from = agent.installation_key_from + " (" + config.file + ":" + std::to_string(at.line) + ")";
    return std::optional<store::GivenKey>({std::move(*key), std::move(from)});
  }
  const config::ConfigError error{
      config.file,
      at,
      "what " + agent.installation_key_from + " names is not an installation key of this version",
      "all that `driftd key new` or `driftd key rotate --out` wrote",
      std::to_string(agent.installation_key.size()) + " bytes, changed, cut or of something else",
      "put the copy of the key that belongs to this store there; a new one does not open it"};
  return fail(Code::corrupt, config::render(error));
}

Result<store::InstallationKey> read_key_file(const std::string& file) {
  DRIFTD_TRY(const auto read, config::read_secret_file(file));
  auto key = store::parse_key(read.text, file);
  return key;
}

Result<store::Settings> store_settings(const config::Config& config) {
  store::Settings out;
  DRIFTD_TRY(out.given, given_key(config));
  out.data_dir = config.agent.data_dir;
  out.agent = config.agent.name;
  out.cluster = config.agent.cluster;
  out.audit = config.retention.audit;
  out.history = config.retention.history;
  if (config.change_log.on()) {
    out.logs_changes = [log = config.change_log](const std::string& provider) { return log.logs(provider); };
  }
  out.route = [routes = config.routes](const core::AgentEvent& event) { return agent_event_sinks(routes, event); };
  return out;
}

}  // namespace driftd::app
