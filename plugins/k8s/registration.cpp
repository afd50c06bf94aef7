// SPDX-License-Identifier: Apache-2.0
#include "k8s/registration.hpp"

#include <algorithm>
#include <cctype>

#include "common/bounded_json.hpp"
#include "common/utf8_text.hpp"
#include "k8s/backend_types.hpp"
#include "k8s/json_access.hpp"
#include "k8s/kinds.hpp"
#include "k8s/mapping.hpp"

namespace driftd::k8s {
namespace {

constexpr std::size_t kMostName = 4u << 10, kMostValue = 8u << 10;  // limits of the host
// of one backend: all of a discovery share 6 MiB
constexpr std::size_t kMaxCapabilities = 256, kMaxMetadata = 64u << 10;

std::int64_t service_port(const Definition& definition, const json& service) {
  if (definition.port) return *definition.port;
  const json& ports = list(service, {"spec", "ports"});
  const std::int64_t usual = default_port(definition.type);
  for (const auto& port : ports) {
    if (find(port, {"port"}) == json(usual)) return usual;
  }
  return ports.empty() || !find(ports.front(), {"port"}).is_number_integer()
             ? usual
             : find(ports.front(), {"port"}).get<std::int64_t>();
}

std::string host_of(const Definition& definition, const json& service, const Settings& settings) {
  if (!definition.service) return {};
  std::string external = text(service, {"spec", "externalName"});
  if (text(service, {"spec", "type"}) == "ExternalName" && !external.empty()) return external;
  return definition.service->name + "." + definition.service->space + ".svc." + settings.cluster_domain;
}

/// Returns where the backend is; empty if that is not known.
std::vector<Endpoint> endpoints_of(const Definition& definition, const json& service, const Settings& settings) {
  std::vector<Endpoint> out = definition.external;
  for (auto& each : out) each.port = each.port.value_or(default_port(definition.type));
  if (service.is_null() || !definition.service) return out;
  out.push_back({host_of(definition, service, settings), service_port(definition, service)});
  return out;
}

std::string render(const Endpoint& endpoint) { return endpoint.host + ":" + std::to_string(*endpoint.port); }

/// Sets `config.kafka.auth.sasl.password` for Kafka, `config.redis.password` for the others. A value on the way that is
/// not an object is replaced, because its author may have written anything.
json& credentials_in(json& config, const std::string& type) {
  json* at = &config;
  for (const char* name : type == "kafka" ? std::vector{"auth", "sasl"} : std::vector<const char*>{}) {
    at = &(*at)[name];
    if (!at->is_object()) *at = json::object();
  }
  return *at;
}

/// A tenant chooses the type. A type that is not a plain name is quoted, so that it stays one member and is never a
/// pattern.
std::string type_path(const std::string& type) {
  const bool plain = !type.empty() && std::all_of(type.begin(), type.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  return plain ? "config." + type : member_path("config", type);
}

std::string credential_path(const std::string& type, const char* name) {
  return type_path(type) + (type == "kafka" ? ".auth.sasl." : ".") + name;
}

std::string newest(const Definition& definition, const Objects& objects) {
  std::string out = definition.prism ? "PrismBackend" : "Service", time;
  for (const auto& ref : {definition.prism, definition.service, definition.secret}) {
    const json& object = find_object(objects, ref);
    if (object.is_null()) continue;
    const std::string when = std::max(last_writer(object).time, text(object, {"metadata", "creationTimestamp"}));
    if (when > time) out = ref->type, time = when;
  }
  return out;
}

std::string origin_of(const std::string& type) {
  if (type == "PrismBackend") return "prism-backend";
  return type == "Secret" ? "kubernetes-secret" : type == "ConfigMap" ? "kubernetes-config-map" : "kubernetes-service";
}

std::string version_of(const json& object) { return text(object, {"metadata", "resourceVersion"}); }

/// Returns why an object that a definition needs is missing.
std::string why_missing(const std::optional<Ref>& ref, const std::string& type, const std::string& purpose) {
  return ref ? "the " + type + " " + ref->space + "/" + ref->name + " is missing or not readable"
             : "no " + type + " is labelled as its " + purpose;
}

/// Returns the member that lists the addresses, for types that have one; empty if the type has `host` and `port`.
std::string list_of_addresses(const std::string& type) {
  return type == "kafka" ? "brokers" : type == "nats" ? "servers" : "";
}

/// The Service, or its label, is gone: an endpoint made from its name would be a guess.
void leave_endpoint_unknown(const Definition& definition, sdk::Record& record) {
  const std::string why = why_missing(definition.service, "Service", "endpoint"),
                    list = list_of_addresses(definition.type);
  const auto unread = [&](const std::string& path) { record.unread.push_back({path, DRIFTD_UNAVAILABLE, why}); };
  unread(definition.service ? "discovery.service.port" : "discovery.service");
  for (const std::string& name : list.empty() ? std::vector<std::string>{"host", "port"} : std::vector{list}) {
    unread(type_path(definition.type) + "." + name);
  }
}

void add_endpoint(const Definition& definition, const json& service, const Settings& settings, json& config,
                  json& discovery, sdk::Record& record) {
  if (definition.service)
    discovery["service"] = {{"name", definition.service->name}, {"namespace", definition.service->space}};
  const auto endpoints = endpoints_of(definition, service, settings);
  if (endpoints.empty()) return leave_endpoint_unknown(definition, record);
  if (definition.service) discovery["service"]["port"] = *endpoints.front().port;
  json texts = json::array();
  for (const auto& each : endpoints) texts.push_back(render(each));
  if (!definition.external.empty()) discovery["external"]["endpoints"] = texts;
  if (const std::string list = list_of_addresses(definition.type); !list.empty()) {
    config[list] = texts;
  } else {
    config["host"] = endpoints.front().host;
    config["port"] = *endpoints.front().port;
  }
}

/// The Secret, or its label, is gone: its fields become unknown, which is not a change of a password.
void add_credentials(const Definition& definition, const json& secret, json& config, sdk::Record& record) {
  const json values = decoded_data(find(secret, {"data"}));
  const bool missing = secret.is_null() && (definition.secret || !definition.prism);
  const std::string why = why_missing(definition.secret, "Secret", "credential");
  for (const auto& [name, key] :
       {std::pair{"username", definition.username_key}, {"password", definition.password_key}}) {
    const std::string path = credential_path(definition.type, name);
    record.sensitive.push_back(path);
    if (missing) record.unread.push_back({path, DRIFTD_UNAVAILABLE, why});
    if (values.contains(key)) credentials_in(config, definition.type)[name] = values.at(key);
  }
}

/// Cuts a value to what the host accepts, at a whole character, and marks the cut.
std::string cut(const std::string& text) {
  constexpr std::string_view kMark = " [cut]";
  if (text.size() <= kMostValue) return text;
  return std::string(common::utf8_prefix(text, kMostValue - kMark.size())).append(kMark);
}

void add_metadata(const Definition& definition, const Objects& objects, sdk::Record& record) {
  auto& out = record.metadata;
  out["resource_version"] = record.version;
  if (definition.service) {
    out["kubernetes_service"] = definition.service->name;
    out["kubernetes_namespace"] = definition.service->space;
  }
  if (definition.secret) {
    out["kubernetes_secret"] = definition.secret->name;
    out["kubernetes_namespace"] = definition.secret->space;
    out["secret_version"] = version_of(find_object(objects, definition.secret));
  }
  if (out.contains("kubernetes_namespace"))
    out["namespace"] = out["kubernetes_namespace"];  // as Terraform's registrations call it
  if (definition.prism)
    out["prism_backend"] = (definition.space.empty() ? "" : definition.space + "/") + definition.prism->name;
  out["defined_in"] = definition.space;
  std::erase_if(out, [](const auto& item) { return item.second.empty(); });
  for (auto& [name, value] : out) value = cut(value);
}

/// Adds the further metadata of its author, as far as the common limit leaves room.
void add_said(const json& said, sdk::Backend& out) {
  std::size_t bytes = 0, left_out = 0;
  for (const auto& [name, value] : said.items()) {
    if (!value.is_string()) continue;
    const std::string shown = looks_secret({}, value) ? "[REDACTED]" : cut(value.get_ref<const std::string&>());
    const std::size_t more = name.size() + shown.size() + 32;
    const bool fits = name.size() <= kMostName && bytes + more <= kMaxMetadata;
    if (fits) bytes += more, out.metadata[name] = shown;
    left_out += fits ? 0 : 1;
  }
  if (left_out != 0)
    out.metadata["left_out"] = std::to_string(left_out) + " members of its metadata are too long or too many";
}

/// Above the host's limits the longest members of a body become unread, so that they hide neither the others nor other
/// records.
void fit(json& body, sdk::Record& record) {
  std::vector<std::string> left_out;
  record.body = common::fit_members(body, common::kMaxBody, left_out);
  for (const auto& name : left_out) {
    const auto inside = [&](const std::string& path) {
      return path.starts_with(name) || path.starts_with("[\"" + name);
    };
    std::erase_if(record.unread, [&](const sdk::Unread& each) { return inside(each.path); });
    std::erase_if(record.sensitive, inside);
    record.unread.push_back(
        {name, DRIFTD_BUDGET, "it is too long to be read: the record would be larger than 4 MiB or 90,000 values"});
  }
  common::bound_paths(record.sensitive);
}

}  // namespace

sdk::Backend backend_of(const Definition& definition, const Objects& objects, const Settings& settings) {
  const json& service = find_object(objects, definition.service);
  sdk::Backend out;
  out.name = definition.name;
  out.type = definition.type;
  out.external = !definition.external.empty() || text(service, {"spec", "type"}) == "ExternalName";
  for (const auto& each : endpoints_of(definition, service, settings)) out.endpoints.push_back(render(each));
  if (out.endpoints.empty()) {  // as leave_endpoint_unknown(): the agent keeps the last one
    out.metadata["endpoint_unread"] = cut(why_missing(definition.service, "Service", "endpoint"));
  }
  out.origin = definition.prism ? "prism-backend" : origin_of("Service");
  const json& main = find_object(objects, definition.prism ? definition.prism : definition.service);
  out.revision = version_of(main);
  for (const auto& each : definition.capabilities) {
    const bool fits = each.is_string() && each.get_ref<const std::string&>().size() <= kMaxType &&
                      out.capabilities.size() < kMaxCapabilities;
    if (fits) out.capabilities.push_back(each);
  }
  const json& keys = find(find_object(objects, definition.secret), {"data"});
  for (const auto& [path, key] :
       {std::pair{"username", definition.username_key}, {"password", definition.password_key}}) {
    if (!keys.contains(key)) continue;
    out.credentials[path] = "k8s:" + definition.secret->space + "/" + definition.secret->name + "#" + key;
  }
  add_said(definition.metadata, out);
  for (const char* name : {"namespace", "defined_in"}) {  // whatever its author wrote there
    out.metadata.erase(name);
    if (!definition.space.empty()) out.metadata[name] = definition.space;
  }
  return out;
}

sdk::Record registration_of(const Definition& definition, const Objects& objects, const Settings& settings,
                            const std::optional<Ref>& cause) {
  sdk::Record out;
  out.kind = kRegistration;
  out.id = out.backend = definition.name;
  json config = definition.overrides, discovery = json::object();
  add_endpoint(definition, find_object(objects, definition.service), settings, config, discovery, out);
  add_credentials(definition, find_object(objects, definition.secret), config, out);
  for (const auto& [name, ref] : {std::pair{"secret", definition.secret}, {"config_map", definition.config_map}}) {
    if (ref) discovery[name] = {{"name", ref->name}, {"namespace", ref->space}};
  }
  if (definition.config_map_unknown) {
    for (const std::string& path : {std::string("discovery.config_map"), type_path(definition.type) + ".data"})
      out.unread.push_back({path, DRIFTD_DENIED, "the right to list ConfigMaps is missing"});
  }
  const json& map = find_object(objects, definition.config_map);
  if (!definition.config_key.empty()) put(config, "data", find(map, {"data", definition.config_key.c_str()}));
  json body = {{"type", definition.type},
               {"discovery", discovery},
               {"config", {{definition.type, config}}},
               {"capabilities", definition.capabilities},
               {"metadata", definition.metadata}};
  mark_secrets(body, {}, out);
  fit(body, out);
  const bool known = cause && definition.uses(*cause) && objects.contains(*cause);
  out.version = version_of(find_object(objects, known              ? cause
                                                : definition.prism ? definition.prism
                                                                   : definition.service));
  out.origin = origin_of(cause ? cause->type : newest(definition, objects));
  add_metadata(definition, objects, out);
  return out;
}

sdk::Record registration_or_unreadable(const Definition& definition, const Objects& objects, const Settings& settings,
                                       const std::optional<Ref>& cause, std::vector<sdk::Diagnostic>& diagnostics) {
  try {
    return registration_of(definition, objects, settings, cause);
  } catch (const json::exception&) {  // its text could quote a value
    const std::string why = "what defines it is not of the form of its type";
    diagnostics.push_back(fault_of(definition, DRIFTD_CORRUPT, definition.title() + ": " + why));
    sdk::Record out;
    out.kind = kRegistration;
    out.id = out.backend = definition.name;
    out.metadata["defined_in"] = definition.space;
    out.unread.push_back({"**", DRIFTD_CORRUPT, why});
    return out;
  }
}

std::optional<sdk::Backend> backend_or_fault(const Definition& definition, const Objects& objects,
                                             const Settings& settings, std::vector<sdk::Diagnostic>& diagnostics) {
  try {
    return backend_of(definition, objects, settings);
  } catch (const json::exception&) {
    diagnostics.push_back(
        fault_of(definition, DRIFTD_CORRUPT, definition.title() + ": what defines it is not of the form of its type"));
    return std::nullopt;
  }
}

}  // namespace driftd::k8s
