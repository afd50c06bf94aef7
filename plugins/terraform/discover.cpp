// SPDX-License-Identifier: Apache-2.0
#include "terraform/discover.hpp"

#include <algorithm>
#include <array>

#include "common/bounded_json.hpp"
#include "terraform/declare_custom.hpp"
#include "terraform/secrets.hpp"
#include "terraform/tree.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

/// What charts name their parts. `{}` is the chart's full name: the release, and `-<chart>` behind it unless it holds
/// that.
struct Chart {
  const char *name, *type, *service;
  int port;
  const char* password_key;
};
constexpr std::array<Chart, 6> kCharts = {{{"kafka", "kafka", "{}", 9092, ""},
                                           {"nats", "nats", "{}", 4222, ""},
                                           {"redis", "redis", "{}-master", 6379, "redis-password"},
                                           {"postgresql", "postgres", "{}", 5432, "postgres-password"},
                                           {"mysql", "mysql", "{}", 3306, "mysql-root-password"},
                                           {"mongodb", "mongodb", "{}", 27017, "mongodb-root-password"}}};

const json& at_path(const json& from, const std::string& path) {
  static const json kNone;
  const json* at = &from;
  for (std::size_t begin = 0; begin <= path.size() && !path.empty();) {
    const auto dot = std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, dot - begin);
    if (at->is_array() && !at->empty()) at = &(*at)[0];  // a nested block
    const auto found = at->is_object() ? at->find(name) : at->end();
    if (!at->is_object() || found == at->end()) return kNone;
    at = &*found;
    begin = dot + 1;
  }
  return *at;
}

using Texts = std::map<std::string, std::string>;
Texts texts(const json& from) {
  Texts out;
  if (!from.is_object()) return out;
  for (const auto& [key, value] : from.items()) {
    if (value.is_string()) out[key] = value.get<std::string>();
  }
  return out;
}
std::string get(const Texts& from, const std::string& key, const std::string& fallback = {}) {
  const auto found = from.find(key);
  return found == from.end() || found->second.empty() ? fallback : found->second;
}
std::string canonical(const std::string& type) { return type == "postgresql" ? "postgres" : type; }
std::string host_of(const std::string& service, const std::string& space) {
  return service + "." + space + ".svc.cluster.local";
}

/// Labels, annotations and how they are told apart, of one resource.
struct Marks {
  Texts labels, annotations;
};

const DiscoverType* rule_of(const Instance& instance, const Settings& settings) {
  for (const auto& rule : settings.discover) {
    if (sdk::glob_match(rule.resources, instance.type)) return &rule;
  }
  return nullptr;
}

/// Charts take `commonLabels` and `commonAnnotations` as values: a helm_release itself has no labels.
Marks marks_of(const Instance& instance, const DiscoverType* rule) {
  const json& metadata = metadata_of(instance.tree());
  if (rule != nullptr) return {texts(at_path(instance.tree(), rule->labels)), {}};
  Marks out{texts(at_path(metadata, "labels")), texts(at_path(metadata, "annotations"))};
  const json values = common::parse_bounded(text_of(metadata, "values")).value;
  if (instance.type == "helm_release" && values.is_object()) {
    out.labels.merge(texts(at_path(values, "commonLabels")));
    out.annotations.merge(texts(at_path(values, "commonAnnotations")));
  }
  out.labels.merge(texts(at_path(instance.tree(), "labels")));
  return out;
}

void from_secret(const Instance& instance, const Marks& marks, const Settings& settings, Definition& out) {
  const json& metadata = metadata_of(instance.tree());
  const std::string name = text_of(metadata, "name"), given = text_of(metadata, "namespace");
  const std::string space = given.empty() ? "default" : given, prefix = settings.label_prefix;
  const json &data = at_path(instance.tree(), "data"), &binary = at_path(instance.tree(), "binary_data");
  for (const auto& [path, key] :
       {std::pair{"username", get(marks.annotations, prefix + "/username-key", "username")},
        std::pair{"password", get(marks.annotations, prefix + "/password-key", "password")}}) {
    const json* from = data.is_object() && data.contains(key)       ? &data
                       : binary.is_object() && binary.contains(key) ? &binary
                                                                    : nullptr;
    if (from == nullptr) continue;
    out.backend.credentials[path] = "k8s:" + space + "/" + name + "#" + key;
    if ((*from)[key].is_string()) out.credentials[path] = (*from)[key];
  }
  const auto written_only = [&](const char* revision) {
    const json& number = at_path(instance.tree(), revision);
    return number.is_number_integer() && number > 0;
  };
  if (out.credentials.empty() && (written_only("data_wo_revision") || written_only("binary_data_wo_revision"))) {
    out.unread = "the Secret's data is write-only (data_wo): the state does not have it";
  }
  const std::string type = text_of(instance.tree(), "type"), binding = "servicebinding.io/";
  if (out.backend.type.empty() && type.rfind(binding, 0) == 0)
    out.backend.type = canonical(type.substr(binding.size()));
  out.discovery["secret"] = {{"name", name}, {"namespace", space}};
  out.backend.metadata["namespace"] = out.backend.metadata["kubernetes_namespace"] = space;
  out.backend.metadata["kubernetes_secret"] = name;
  out.backend.metadata["secret_version"] = text_of(metadata, "resource_version");
}

void from_chart(const Instance& instance, Definition& to) {
  sdk::Backend& out = to.backend;
  const json& metadata = metadata_of(instance.tree());
  const std::string release = text_of(instance.tree(), "name"), given = text_of(instance.tree(), "namespace");
  const std::string space = given.empty() ? "default" : given;
  std::string chart = text_of(metadata, "chart");
  if (chart.empty()) chart = text_of(instance.tree(), "chart");
  chart = chart.substr(chart.rfind('/') + 1);
  const std::string version =
      text_of(metadata, "version").empty() ? text_of(instance.tree(), "version") : text_of(metadata, "version");
  out.metadata["namespace"] = space;
  out.metadata["helm_release"] = release;
  out.metadata["helm_chart"] = chart;
  out.metadata["helm_version"] = version;
  out.version = text_of(metadata, "app_version");
  to.discovery["helm_release"] = {{"name", release}, {"namespace", space}, {"chart", chart}, {"version", version}};
  const auto known = std::find_if(kCharts.begin(), kCharts.end(), [&](const Chart& c) { return chart == c.name; });
  if (known == kCharts.end()) return;
  const json values = common::parse_bounded(text_of(metadata, "values")).value;
  std::string full = values.is_object() ? text_of(values, "fullnameOverride") : "";
  if (full.empty()) full = release.find(chart) == std::string::npos ? release + "-" + chart : release;
  std::string service = known->service;
  service.replace(0, 2, full);
  if (out.type.empty()) out.type = known->type;
  out.endpoints = {host_of(service, space) + ":" + std::to_string(known->port)};
  to.discovery["service"] = {{"name", service}, {"namespace", space}, {"port", known->port}};
  if (*known->password_key != '\0')
    out.credentials["password"] = "k8s:" + space + "/" + full + "#" + known->password_key;
}

/// Returns an address without user, password and query. Empty if the password cannot be located: an `@` after a `/`,
/// `?` or `#` may end a password that holds those characters, or be part of a path; a part with `=` is one of a
/// connection string.
std::string told(std::string endpoint) {
  const auto scheme = endpoint.find("://");
  const auto host = scheme == std::string::npos ? 0 : scheme + 3;
  const auto end = std::min(endpoint.find_first_of("/?#", host), endpoint.size());
  if (endpoint.find('@', end) != std::string::npos) return {};
  endpoint = endpoint.substr(0, endpoint.find_first_of("?#", host));
  if (const auto at = endpoint.rfind('@'); at != std::string::npos && at >= host) endpoint.erase(host, at + 1 - host);
  return endpoint.find('=') == std::string::npos ? endpoint : std::string();
}

/// One text, several behind commas, or a list of texts.
std::vector<std::string> endpoints_of(const json& from, const std::string& port) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& text) {
    const auto last = text.rfind('@');
    for (std::size_t at = 0; at < text.size();) {
      at = std::min(text.find_first_not_of(' ', at), text.size());
      const auto comma = std::min(text.find(',', at), text.size());
      const std::string piece = text.substr(at, comma - at);
      at = comma + 1;
      // A piece before one with an `@` may be the beginning of a password with a comma.
      const bool torn = last != std::string::npos && comma < last && piece.find('@') == std::string::npos;
      const std::string one = torn ? std::string() : told(piece);
      const bool with_port = port.empty() || one.find(':', one.rfind(']') + 1) != std::string::npos;
      if (!one.empty()) out.push_back(with_port ? one : one + ":" + port);
    }
  };
  if (!from.is_array()) add(scalar_text(from));
  for (const auto& each : from.is_array() ? from : json::array()) add(scalar_text(each));
  return out;
}

/// `a[0].b` and `a["b"]` as rules write them: `a.b`.
std::string as_in_rules(const std::string& path) {
  std::string out;
  for (std::size_t at = 0; at < path.size();) {
    const auto close = path[at] == '[' ? path.find(']', at) : std::string::npos;
    if (close == std::string::npos) {
      out += path[at++];
      continue;
    }
    if (path[at + 1] == '"') out += (out.empty() ? "" : ".") + path.substr(at + 2, close - at - 3);
    at = close + 1;
  }
  return out;
}

/// Returns the attribute of the rule that would be shown in clear text and is secret; empty if there is none.
std::string secret_attribute(const Instance& instance, const DiscoverType& rule, const Settings& settings) {
  const auto secret = secret_paths(instance, settings);
  const auto holds = [](const std::string& above, const std::string& path) {
    return path.starts_with(above) && (path.size() == above.size() || path[above.size()] == '.');
  };
  for (const auto& path : {rule.endpoint, rule.port, rule.version}) {
    if (path.empty()) continue;
    if (std::any_of(secret.begin(), secret.end(), [&](const auto& one) { return holds(as_in_rules(one), path); }))
      return path;
  }
  return {};
}

void from_rule(const Instance& instance, const DiscoverType& rule, Definition& out) {
  const auto text = [&](const std::string& path) {
    return path.empty() ? std::string() : scalar_text(at_path(instance.tree(), path));
  };
  if (out.backend.type.empty()) out.backend.type = canonical(rule.type);
  out.backend.endpoints = endpoints_of(at_path(instance.tree(), rule.endpoint), text(rule.port));
  out.backend.version = text(rule.version);
  out.backend.external = true;
  for (const auto& [name, path] : {std::pair{"username", rule.username}, {"password", rule.password}}) {
    if (const std::string value = text(path); !value.empty()) out.credentials[name] = value;
  }
}

/// Explicit labels and annotations take precedence over what the type suggests.
void from_marks(const Marks& marks, const Settings& settings, Definition& to) {
  sdk::Backend& out = to.backend;
  const std::string& prefix = settings.label_prefix;
  const std::string endpoint = get(marks.annotations, prefix + "/endpoint"),
                    service = get(marks.annotations, prefix + "/service");
  const std::string port = get(marks.annotations, prefix + "/port"), space = get(out.metadata, "namespace", "default");
  if (!endpoint.empty()) out.endpoints = endpoints_of(endpoint, {});
  if (endpoint.empty() && !service.empty()) {
    out.endpoints = {host_of(service, space) + (port.empty() ? "" : ":" + port)};
    to.discovery["service"] = {{"name", service}, {"namespace", space}};
    if (!port.empty()) to.discovery["service"]["port"] = port;
  }
  const std::string capabilities = get(marks.annotations, prefix + "/capabilities");
  for (std::size_t at = 0; at < capabilities.size();) {
    const auto comma = std::min(capabilities.find(',', at), capabilities.size());
    if (comma > at) out.capabilities.push_back(capabilities.substr(at, comma - at));
    at = comma + 1;
  }
}

}  // namespace

std::optional<Definition> definition_of(const Reading& reading, const Instance& instance, const Settings& settings,
                                        std::string& why) {
  if (!instance.deposed.empty()) return std::nullopt;
  const DiscoverType* rule = rule_of(instance, settings);
  const bool secret = instance.type == "kubernetes_secret" || instance.type == "kubernetes_secret_v1";
  const bool chart = instance.type == "helm_release";
  if (rule == nullptr && !secret && !chart) return std::nullopt;
  const Marks marks = marks_of(instance, rule);
  const std::string& prefix = settings.label_prefix;
  if (get(marks.labels, prefix + "/backend") != "true") return std::nullopt;
  Definition to;
  sdk::Backend& out = to.backend;
  const std::string own = secret ? text_of(metadata_of(instance.tree()), "name") : text_of(instance.tree(), "name");
  out.name = get(marks.labels, prefix + "/backend-name", own.empty() ? instance.address : own);
  out.type = canonical(get(marks.labels, prefix + "/backend-type"));
  if (secret) from_secret(instance, marks, settings, to);
  if (chart) from_chart(instance, to);
  if (rule != nullptr) {
    if (const std::string path = secret_attribute(instance, *rule, settings); !path.empty()) {
      why = "backend " + out.name + ": " + path +
            " is secret and is not told; name another attribute in the discovery of " + instance.type;
      return std::nullopt;
    }
    from_rule(instance, *rule, to);
  }
  from_marks(marks, settings, to);
  const json given = rule == nullptr ? json() : at_path(instance.tree(), rule->endpoint);
  if (out.endpoints.empty() && !given.empty() && given != "") {
    why = "backend " + out.name + ": " + rule->endpoint + " cannot be told without what may be a password; " +
          "expected host:port, or a URL whose password is percent-encoded";
    return std::nullopt;
  }
  if (out.type.empty()) {
    why = "backend " + out.name + " has no type; label it " + prefix + "/backend-type";
    return std::nullopt;
  }
  out.labels = marks.labels;
  out.origin = "terraform-state";
  out.revision = reading.head.serial;
  out.observed_ns = reading.sent_ns;
  out.metadata.insert(reading.provenance.begin(), reading.provenance.end());
  out.metadata["address"] = instance.address;
  out.metadata["lineage"] = reading.head.lineage;
  out.metadata["serial"] = reading.head.serial;
  std::erase_if(out.metadata, [](const auto& item) { return item.second.empty(); });
  return to;
}

std::optional<Definition> Finder::find(const Instance& instance) {
  std::string why;
  auto found = definition_of(reading_, instance, settings_, why);
  if (found && !names.insert(found->backend.name).second)
    why = "two resources are labelled as backend " + found->backend.name;
  if (!why.empty()) {
    diagnostics.push_back({DRIFTD_INVALID, "instance", instance.id(), {}, why});
    return std::nullopt;
  }
  if (found) backends.push_back(found->backend);
  return found;
}

}  // namespace driftd::terraform
