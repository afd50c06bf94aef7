// SPDX-License-Identifier: Apache-2.0
#include "resolver/document.hpp"

#include <nlohmann/json.hpp>

namespace driftd::resolver {
namespace {

using nlohmann::json;

/// Puts the value where it was taken from: `auth.sasl.password` is a member of a member.
void put(json& config, const std::string& path, const std::string& value) {
  json* at = &config;
  std::size_t from = 0;
  for (auto dot = path.find('.'); dot != path.npos; dot = path.find('.', from)) {
    json& next = (*at)[path.substr(from, dot - from)];
    if (!next.is_object()) next = json::object();
    at = &next;
    from = dot + 1;
  }
  (*at)[path.substr(from)] = value;
}

json brokers_in(const std::string& endpoint) {
  json out = json::array();
  std::size_t from = 0;
  while (from <= endpoint.size()) {
    const auto comma = std::min(endpoint.find(',', from), endpoint.size());
    if (comma > from) out.push_back(endpoint.substr(from, comma - from));
    from = comma + 1;
  }
  return out;
}

json entry_of(const consumer::SlotConfig& slot) {
  const auto& backend = slot.backend;
  json config = json::parse(backend.config_json, nullptr, false);
  if (!config.is_object()) config = json::object();
  if (backend.type == "kafka") {
    if (!backend.endpoint.empty()) config["brokers"] = brokers_in(backend.endpoint);
  } else if (!slot.host().empty()) {
    config["host"] = slot.host();
    if (slot.port() != 0) config["port"] = slot.port();
  }
  for (const auto& [member, value] : slot.credentials) put(config, member, value.reveal());
  json out = {{"type", backend.type}, {"config", std::move(config)}, {"capabilities", backend.capabilities}};
  if (!backend.name.empty()) out["backend"] = backend.name;
  if (!backend.endpoint.empty()) out["endpoint"] = backend.endpoint;
  if (!backend.metadata.empty()) out["metadata"] = backend.metadata;
  return out;
}

}  // namespace

Former parse_document(const consumer::Secret& text) {
  const json whole = json::parse(text.reveal(), nullptr, false);
  Former out;
  if (!whole.is_object()) return out;
  for (const auto& [slot, config] : whole.items()) out.emplace(slot, consumer::Secret(config.dump()));
  return out;
}

consumer::Secret render_document(const std::map<std::string, consumer::SlotConfig>& slots, const Former& former) {
  json out = json::object();
  for (const auto& [name, config] : former) out[name] = json::parse(config.reveal());
  for (const auto& [name, slot] : slots) out[name] = entry_of(slot);
  return consumer::Secret(out.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

}  // namespace driftd::resolver
