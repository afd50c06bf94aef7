// SPDX-License-Identifier: Apache-2.0
#include "k8s/prism_spec.hpp"

#include <algorithm>
#include <cctype>

#include "common/short_text.hpp"
#include "k8s/backend_types.hpp"
#include "k8s/json_access.hpp"

namespace driftd::k8s {
namespace {

constexpr std::size_t kMaxFound = 60;  // bytes of a value that a fault shows
constexpr std::size_t kMaxHost = 253;  // of DNS
constexpr std::size_t kMaxEndpoints = 32;
constexpr std::int64_t kMaxPort = 65'535;

/// Shows a value as YAML has it, without the inside of a list or object.
std::string shown(const json& value) {
  if (value.is_null()) return "nothing";
  if (value.is_object()) return "an object";
  if (value.is_array()) return value.empty() ? "an empty list" : "a list";
  const std::string text = common::short_text(value.dump(-1, ' ', false, json::error_handler_t::replace), kMaxFound);
  return value.is_string() ? "the text " + text : text;
}

std::string fault(const std::string& where, const std::string& expected, const json& found) {
  return "spec." + where + ": expected " + expected + ", found " + shown(found);
}

/// Collects the faults of one PrismBackend.
class SpecReader {
 public:
  SpecReader(const json& spec, std::vector<std::string>& faults) : spec_(spec), faults_(faults) {}

  std::string type() {
    const json& given = find(spec_, {"type"});
    const std::string name = given.is_string() ? given.get<std::string>() : std::string();
    if (is_backend_type(name)) return canonical_type(name);
    add("type", "one of " + backend_type_names(), given);
    return {};
  }

  /// The object of the cluster that `member` of the discovery names; `space` is where it is if that says nothing.
  std::optional<Ref> object(const char* member, const char* type, const std::string& space) {
    const json& given = find(spec_, {"discovery", member});
    if (given.is_null()) return std::nullopt;
    const std::string where = std::string("discovery.") + member, name = text(given, {"name"});
    if (name.empty()) {
      add(where + ".name", std::string("the name of a ") + type, find(given, {"name"}));
      return std::nullopt;
    }
    const std::string other = text(given, {"namespace"}), home = other.empty() ? space : other;
    if (home.empty()) {
      faults_.push_back(fault(where + ".namespace", std::string("the namespace of the ") + type + " " + name,
                              find(given, {"namespace"})) +
                        "; a PrismBackend that belongs to the cluster has none of its own");
    }
    return Ref{type, home, name};
  }

  std::optional<std::int64_t> port() {
    const json& given = find(spec_, {"discovery", "service", "port"});
    if (given.is_null()) return std::nullopt;
    if (given.is_number_integer() && given >= 1 && given <= kMaxPort) return given.get<std::int64_t>();
    add("discovery.service.port", "a whole number from 1 to 65535", given);
    return std::nullopt;
  }

  std::vector<Endpoint> external() {
    const json& given = find(spec_, {"discovery", "external"});
    const json& endpoints = find(given, {"endpoints"});
    std::vector<Endpoint> out;
    if (given.is_null()) return out;
    if (!endpoints.is_array() || endpoints.empty() || endpoints.size() > kMaxEndpoints) {
      add("discovery.external.endpoints", "a list of 1 to 32 texts host:port", endpoints);
      return out;
    }
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      const auto parsed = endpoints[i].is_string() ? parse_endpoint(endpoints[i]) : std::nullopt;
      if (parsed)
        out.push_back(*parsed);
      else
        add("discovery.external.endpoints[" + std::to_string(i) + "]", "host or host:port", endpoints[i]);
    }
    return out;
  }

  /// One of both says where the backend is.
  void require_one_place() {
    const json &service = find(spec_, {"discovery", "service"}), &external = find(spec_, {"discovery", "external"});
    if (service.is_null() == external.is_null()) {
      faults_.push_back(std::string("spec.discovery: expected either service (of this cluster) or external (endpoints "
                                    "outside of it), found ") +
                        (service.is_null() ? "neither" : "both"));
    }
  }

 private:
  void add(const std::string& where, const std::string& expected, const json& found) {
    faults_.push_back(fault(where, expected, found));
  }

  const json& spec_;
  std::vector<std::string>& faults_;
};

}  // namespace

std::optional<Endpoint> parse_endpoint(const std::string& text) {
  Endpoint out;
  const auto bracket = text.starts_with('[') ? text.find(']') : 0;
  if (bracket == std::string::npos) return std::nullopt;
  const auto colon = text.find(':', bracket);
  out.host = text.substr(0, colon);
  if (out.host.empty() || out.host.size() > kMaxHost) return std::nullopt;
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; };
  const auto in_brackets = [](unsigned char c) { return std::isxdigit(c) != 0 || c == ':' || c == '.'; };
  const bool good = bracket == 0 ? std::all_of(out.host.begin(), out.host.end(), allowed)
                                 : bracket > 1 && out.host.size() == bracket + 1 &&
                                       std::all_of(out.host.begin() + 1, out.host.end() - 1, in_brackets);
  if (!good) return std::nullopt;
  if (colon == std::string::npos) return out;
  const std::string digits = text.substr(colon + 1);
  if (digits.empty() || digits.size() > 5 || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  out.port = std::stoll(digits);
  return *out.port >= 1 && *out.port <= kMaxPort ? std::optional(out) : std::nullopt;
}

PrismSpec parse_prism(const Ref& ref, const json& object) {
  const json& spec = find(object, {"spec"});
  PrismSpec out;
  Definition& to = out.definition;
  SpecReader from(spec, out.faults);
  to.name = ref.name;
  to.space = ref.space;
  to.prism = ref;
  out.elsewhere = !find(spec, {"discovery", "cluster"}).is_null();
  to.type = from.type();
  from.require_one_place();
  to.service = from.object("service", "Service", ref.space);
  const std::string& home = to.service ? to.service->space : ref.space;
  to.port = from.port();
  to.external = from.external();
  to.secret = from.object("secret", "Secret", home);
  to.config_map = from.object("configMap", "ConfigMap", home);
  const std::string username = text(spec, {"discovery", "secret", "usernameKey"});
  const std::string password = text(spec, {"discovery", "secret", "passwordKey"});
  if (!username.empty()) to.username_key = username;
  if (!password.empty()) to.password_key = password;
  to.config_key = text(spec, {"discovery", "configMap", "key"});
  if (find(spec, {"config"}).is_object()) to.overrides = find(spec, {"config"});
  to.capabilities = list(spec, {"capabilities"});
  if (find(spec, {"metadata"}).is_object()) to.metadata = find(spec, {"metadata"});
  return out;
}

}  // namespace driftd::k8s
