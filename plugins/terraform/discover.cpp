// SPDX-License-Identifier: Apache-2.0
#include "terraform/discover.hpp"

#include <algorithm>
#include <array>

#include "terraform/declare_special.hpp"
#include "terraform/document.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

/// What charts name their parts. `{}` is the chart's full name: the release, and `-<chart>` behind it unless it holds that.
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
std::string get(const Texts& from, const std::string& key, std::string fallback = {}) {
  const auto found = from.find(key);
  return found == from.end() || found->second.empty() ? std::move(fallback) : found->second;
}
std::string canonical(const std::string& type) { return type == "postgresql" ? "postgres" : type; }
std::string host_of(const std::string& service, const std::string& space) { return service + "." + space + ".svc.cluster.local"; }

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
  const json& metadata = metadata_of(instance.attributes);
  if (rule != nullptr) return {texts(at_path(instance.attributes, rule->labels)), {}};
  Marks out{texts(at_path(metadata, "labels")), texts(at_path(metadata, "annotations"))};
  const json values = json::parse(text_of(metadata, "values"), nullptr, false);
  if (instance.type == "helm_release" && values.is_object()) {
    out.labels.merge(texts(at_path(values, "commonLabels")));
    out.annotations.merge(texts(at_path(values, "commonAnnotations")));
  }
  out.labels.merge(texts(at_path(instance.attributes, "labels")));
  return out;
}

void from_secret(const Instance& instance, const Marks& marks, const Settings& settings, sdk::Backend& out) {
  const json& metadata = metadata_of(instance.attributes);
  const std::string name = text_of(metadata, "name"), given = text_of(metadata, "namespace");
  const std::string space = given.empty() ? "default" : given, prefix = settings.label_prefix;
  const json& data = at_path(instance.attributes, "data");
  for (const auto& [path, key] : {std::pair{"username", get(marks.annotations, prefix + "/username-key", "username")},
                                  std::pair{"password", get(marks.annotations, prefix + "/password-key", "password")}}) {
    if (data.is_object() && data.contains(key)) out.credentials[path] = "k8s:" + space + "/" + name + "#" + key;
  }
  const std::string type = text_of(instance.attributes, "type"), binding = "servicebinding.io/";
  if (out.type.empty() && type.rfind(binding, 0) == 0) out.type = canonical(type.substr(binding.size()));
  out.metadata["namespace"] = space;
  out.metadata["kubernetes_secret"] = name;
}

void from_chart(const Instance& instance, sdk::Backend& out) {
  const json& metadata = metadata_of(instance.attributes);
  const std::string release = text_of(instance.attributes, "name"), given = text_of(instance.attributes, "namespace");
  const std::string space = given.empty() ? "default" : given;
  std::string chart = text_of(metadata, "chart");
  if (chart.empty()) chart = text_of(instance.attributes, "chart");
  chart = chart.substr(chart.rfind('/') + 1);
  out.metadata["namespace"] = space;
  out.metadata["helm_release"] = release;
  out.metadata["helm_chart"] = chart;
  out.metadata["helm_version"] = text_of(metadata, "version").empty() ? text_of(instance.attributes, "version") : text_of(metadata, "version");
  out.version = text_of(metadata, "app_version");
  const auto known = std::find_if(kCharts.begin(), kCharts.end(), [&](const Chart& c) { return chart == c.name; });
  if (known == kCharts.end()) return;
  const json values = json::parse(text_of(metadata, "values"), nullptr, false);
  std::string full = values.is_object() ? text_of(values, "fullnameOverride") : "";
  if (full.empty()) full = release.find(chart) == std::string::npos ? release + "-" + chart : release;
  std::string service = known->service;
  service.replace(0, 2, full);
  if (out.type.empty()) out.type = known->type;
  out.endpoints = {host_of(service, space) + ":" + std::to_string(known->port)};
  if (*known->password_key != '\0') out.credentials["password"] = "k8s:" + space + "/" + full + "#" + known->password_key;
}

void from_rule(const Instance& instance, const DiscoverType& rule, sdk::Backend& out) {
  const auto text = [&](const std::string& path) { return path.empty() ? std::string() : scalar_text(at_path(instance.attributes, path)); };
  if (out.type.empty()) out.type = canonical(rule.type);
  const std::string endpoint = text(rule.endpoint), port = text(rule.port);
  const bool with_port = port.empty() || endpoint.find(':') != std::string::npos;
  if (!endpoint.empty()) out.endpoints = {with_port ? endpoint : endpoint + ":" + port};
  out.version = text(rule.version);
  out.external = true;
}

/// What labels and annotations say outright goes before what a type lets us guess.
void from_marks(const Marks& marks, const Settings& settings, sdk::Backend& out) {
  const std::string& prefix = settings.label_prefix;
  const std::string endpoint = get(marks.annotations, prefix + "/endpoint"), service = get(marks.annotations, prefix + "/service");
  const std::string port = get(marks.annotations, prefix + "/port"), space = get(out.metadata, "namespace", "default");
  if (!endpoint.empty()) out.endpoints = {endpoint};
  if (endpoint.empty() && !service.empty()) out.endpoints = {host_of(service, space) + (port.empty() ? "" : ":" + port)};
  const std::string capabilities = get(marks.annotations, prefix + "/capabilities");
  for (std::size_t at = 0; at < capabilities.size();) {
    const auto comma = std::min(capabilities.find(',', at), capabilities.size());
    if (comma > at) out.capabilities.push_back(capabilities.substr(at, comma - at));
    at = comma + 1;
  }
}

}  // namespace

std::optional<sdk::Backend> backend_of(const Reading& reading, const Instance& instance, const Settings& settings, std::string& why) {
  if (!instance.deposed.empty()) return std::nullopt;
  const DiscoverType* rule = rule_of(instance, settings);
  const bool secret = instance.type == "kubernetes_secret" || instance.type == "kubernetes_secret_v1";
  const bool chart = instance.type == "helm_release";
  if (rule == nullptr && !secret && !chart) return std::nullopt;
  const Marks marks = marks_of(instance, rule);
  const std::string& prefix = settings.label_prefix;
  if (get(marks.labels, prefix + "/backend") != "true") return std::nullopt;
  sdk::Backend out;
  const std::string own = secret ? text_of(metadata_of(instance.attributes), "name") : text_of(instance.attributes, "name");
  out.name = get(marks.labels, prefix + "/backend-name", own.empty() ? instance.address : own);
  out.type = canonical(get(marks.labels, prefix + "/backend-type"));
  if (secret) from_secret(instance, marks, settings, out);
  if (chart) from_chart(instance, out);
  if (rule != nullptr) from_rule(instance, *rule, out);
  from_marks(marks, settings, out);
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
  return out;
}

}  // namespace driftd::terraform
