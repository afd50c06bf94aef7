// SPDX-License-Identifier: Apache-2.0
// A backend as a state defines it: the record of kind `registration`, in the words of the RFC's registration.
#include <algorithm>

#include "terraform/discover.hpp"
#include "terraform/secrets.hpp"
#include "terraform/tree.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

struct Address {
  std::string host, port;
};

/// `redis://host:6379/0`, `host:6379`, `[::1]:6379`, `host`.
Address address_of(std::string endpoint) {
  if (const auto scheme = endpoint.find("://"); scheme != std::string::npos) endpoint.erase(0, scheme + 3);
  endpoint = endpoint.substr(0, endpoint.find('/'));
  const auto colon = endpoint.find(':', endpoint.starts_with('[') ? endpoint.find(']') : 0);
  if (colon == std::string::npos) return {endpoint, {}};
  return {endpoint.substr(0, colon), endpoint.substr(colon + 1)};
}

json port_of(const std::string& text) {
  const bool number = !text.empty() && text.size() <= 5 &&
                      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return number ? json(std::stoi(text)) : json(text);
}

/// kafka and nats have lists, all else one host and port; credentials of kafka lie below auth.sasl.
void add_endpoints(const sdk::Backend& backend, json& config) {
  if (backend.endpoints.empty()) return;
  if (backend.type == "kafka" || backend.type == "nats") {
    config[backend.type == "kafka" ? "brokers" : "servers"] = backend.endpoints;
    return;
  }
  const Address address = address_of(backend.endpoints.front());
  config["host"] = address.host;
  if (!address.port.empty()) config["port"] = port_of(address.port);
}

}  // namespace

sdk::Record registration_of(const Reading& reading, const Instance& instance, const Definition& definition) {
  const sdk::Backend& backend = definition.backend;
  sdk::Record out = base_record(reading, kRegistration, backend.name);
  out.backend = backend.name;
  json config = json::object();
  add_endpoints(backend, config);
  const bool sasl = backend.type == "kafka";
  const std::string below = child_path("config", backend.type) + (sasl ? ".auth.sasl." : ".");
  for (const char* name : {"username", "password"}) {
    out.sensitive.push_back(below + name);
    const auto value = definition.credentials.find(name);
    if (value != definition.credentials.end()) (sasl ? config["auth"]["sasl"] : config)[name] = *value;
    if (!definition.unread.empty()) out.unread.push_back({below + name, DRIFTD_UNSUPPORTED, definition.unread});
  }
  json discovery = definition.discovery;
  if (discovery.contains("service") && discovery["service"].contains("port") &&
      discovery["service"]["port"].is_string()) {
    discovery["service"]["port"] = port_of(discovery["service"]["port"].get<std::string>());
  }
  json body = {{"type", backend.type},
               {"discovery", discovery},
               {"config", {{backend.type, config}}},
               {"capabilities", backend.capabilities}};
  if (!backend.version.empty()) body["version"] = backend.version;
  out.body = render(body);
  out.metadata.insert(backend.metadata.begin(), backend.metadata.end());
  out.metadata["resource_type"] = instance.type;
  return out;
}

}  // namespace driftd::terraform
