// SPDX-License-Identifier: Apache-2.0
#include "operator/helm_charts.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>
#include <algorithm>
#include <stdexcept>

#include "base/digest.hpp"
#include "kube/json_access.hpp"
#include "operator/types.hpp"

namespace driftd::op {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxName = 253, kMaxLabel = 63, kMaxPatterns = 1'000;
const std::vector<std::string> kStream = {"pubsub_basic", "pubsub_persistent", "stream_basic"};

std::string after_slash(const std::string& chart) { return chart.substr(chart.rfind('/') + 1); }

std::string fullname(const Release& release) {
  const std::string given = kube::text(release.values, {"fullnameOverride"});
  if (!given.empty()) return given;
  std::string part = kube::text(release.values, {"nameOverride"});
  if (part.empty()) part = release.chart;
  std::string out = release.name.find(part) == std::string::npos ? release.name + "-" + part : release.name;
  out.resize(std::min(out.size(), kMaxLabel));
  while (out.ends_with('-')) out.pop_back();
  return out;
}

void replace(std::string& text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

std::string rendered(std::string pattern, const Release& release) {
  replace(pattern, "{{.Release}}", release.name);
  replace(pattern, "{{.Namespace}}", release.space);
  replace(pattern, "{{.Fullname}}", fullname(release));
  return pattern;
}

/// A Secret that the release's user made. Charts of Bitnami call it so.
std::string existing_secret(const Release& release) {
  for (const auto& path : {std::initializer_list<const char*>{"auth", "existingSecret"},
                           {"auth", "existingPasswordSecret"},
                           {"existingSecret"}}) {
    const std::string found = kube::text(release.values, path);
    if (!found.empty()) return found;
  }
  return {};
}

std::vector<std::string> secrets_of(const Release& release, const ChartPattern& pattern) {
  std::vector<std::string> out;
  if (const std::string given = existing_secret(release); !given.empty()) out.push_back(given);
  for (const auto& each : pattern.secrets) out.push_back(rendered(each, release));
  return out;
}

std::string text_of(const YAML::Node& entry, const char* name, bool required) {
  const YAML::Node found = entry[name];
  const auto where = [](const YAML::Node& node) {
    return fmt::format("patterns.yaml:{}:{}: ", node.Mark().line + 1, node.Mark().column + 1);
  };
  if (!found) {
    if (!required) return {};
    throw std::runtime_error(where(entry) + "expected '" + name + "'; found none");
  }
  if (!found.IsScalar() || (required && found.Scalar().empty())) {
    throw std::runtime_error(where(found) + name + ": expected a text; found " +
                             (found.IsScalar() ? "an empty one" : "a list or map"));
  }
  return found.Scalar();
}

/// Returns true if the Service has this port, or does not say which ones it has.
bool offers(const json& service, std::int64_t port) {
  const json& ports = kube::list(service, {"spec", "ports"});
  return ports.empty() || std::any_of(ports.begin(), ports.end(), [&](const json& each) {
           const json& found = kube::find(each, {"port"});
           return found.is_number_integer() && found.get<std::int64_t>() == port;
         });
}

}  // namespace

const std::vector<ChartPattern>& known_charts() {
  static const std::vector<ChartPattern> charts = {
      {"bitnami/redis",
       "redis",
       {"{{.Fullname}}-master"},
       {"{{.Fullname}}"},
       "redis-password",
       6379,
       {"keyvalue_basic", "keyvalue_scan", "keyvalue_ttl", "pubsub_basic"}},
      {"bitnami/postgresql",
       "postgresql",
       {"{{.Fullname}}", "{{.Fullname}}-primary", "{{.Release}}-postgresql"},
       {"{{.Fullname}}", "{{.Release}}-postgresql"},
       "postgres-password",
       5432,
       {"keyvalue_basic", "keyvalue_scan", "keyvalue_transactional", "sql_basic"}},
      {"bitnami/mysql",
       "mysql",
       {"{{.Fullname}}", "{{.Fullname}}-primary"},
       {"{{.Fullname}}"},
       "mysql-root-password",
       3306,
       {"sql_basic"}},
      {"bitnami/mongodb",
       "mongodb",
       {"{{.Fullname}}", "{{.Fullname}}-headless"},
       {"{{.Fullname}}"},
       "mongodb-root-password",
       27017,
       {}},
      {"bitnami/kafka",
       "kafka",
       {"{{.Fullname}}"},
       {"{{.Fullname}}-user-passwords"},
       "client-passwords",
       9092,
       kStream},
      {"bitnami/rabbitmq", "rabbitmq", {"{{.Fullname}}"}, {"{{.Fullname}}"}, "rabbitmq-password", 5672, {}},
      {"nats/nats", "nats", {"{{.Fullname}}"}, {"{{.Release}}-auth", "{{.Fullname}}-auth"}, "password", 4222, kStream},
      {"elastic/elasticsearch",
       "elasticsearch",
       {"{{.Release}}-master", "elasticsearch-master"},
       {"{{.Release}}-credentials", "elasticsearch-master-credentials"},
       "password",
       9200,
       {}}};
  return charts;
}

std::vector<ChartPattern> read_patterns(const std::string& yaml) {
  std::vector<ChartPattern> out;
  try {
    const YAML::Node list = YAML::Load(yaml);
    if (list.IsNull()) return out;
    if (!list.IsSequence()) throw std::runtime_error("patterns.yaml:1:1: expected a list of patterns");
    if (list.size() > kMaxPatterns) {
      throw std::runtime_error(
          fmt::format("patterns.yaml: expected at most {} patterns; found {}", kMaxPatterns, list.size()));
    }
    for (const auto& entry : list) {
      if (!entry.IsMap()) {
        throw std::runtime_error(fmt::format("patterns.yaml:{}:{}: expected chartName, backendType, servicePattern …",
                                             entry.Mark().line + 1, entry.Mark().column + 1));
      }
      ChartPattern one;
      one.chart = text_of(entry, "chartName", true);
      one.type = text_of(entry, "backendType", true);
      one.services = {text_of(entry, "servicePattern", true)};
      if (const std::string secret = text_of(entry, "secretPattern", false); !secret.empty()) one.secrets = {secret};
      one.password_key = text_of(entry, "secretPasswordKey", false);
      if (const YAML::Node port = entry["port"]) one.port = port.as<std::int64_t>();
      if (const YAML::Node words = entry["capabilities"]) one.capabilities = words.as<std::vector<std::string>>();
      out.push_back(std::move(one));
    }
  } catch (const YAML::Exception& error) {
    throw std::runtime_error(
        fmt::format("patterns.yaml:{}:{}: {}", error.mark.line + 1, error.mark.column + 1, error.msg));
  }
  return out;
}

const ChartPattern* pattern_of(const Release& release, const std::vector<ChartPattern>& own) {
  for (const auto* patterns : {&own, &known_charts()}) {
    for (const auto& each : *patterns) {
      if (after_slash(each.chart) == release.chart) return &each;
    }
  }
  return nullptr;
}

std::vector<k8s::Ref> candidates(const Release& release, const ChartPattern& pattern) {
  std::vector<k8s::Ref> out;
  for (const auto& each : pattern.services) out.push_back({"Service", release.space, rendered(each, release)});
  for (const auto& each : secrets_of(release, pattern)) out.push_back({"Secret", release.space, each});
  return out;
}

std::string backend_name(const Release& release, bool taken) {
  std::string out = release.name + "-" + release.space;
  const std::string id = release.space + "/" + release.name;
  const bool is_long = out.size() > kMaxName;
  if (!taken && !is_long) return out;
  out.resize(std::min(out.size(), kMaxName - 7));
  return out + fmt::format("-{:06x}", digest(0, {id}).low & 0xffffff);
}

std::optional<controller::Key> release_of(const json& object) {
  if (kube::text(object, {"metadata", "labels", kAutoDiscovered}) != "true") return std::nullopt;
  return release_of_reference("helm:" + kube::text(object, {"metadata", "annotations", kReleaseId}));
}

std::string reference_of(const controller::Key& release) { return "helm:" + release.name_space + "/" + release.name; }

std::optional<controller::Key> release_of_reference(const std::string& who) {
  const std::size_t slash = who.find('/');
  if (!who.starts_with("helm:") || slash == who.npos) return std::nullopt;
  return controller::Key{who.substr(5, slash - 5), who.substr(slash + 1)};
}

json backend_of_release(const Release& release, const ChartPattern& pattern, const std::string& name,
                        const std::function<std::optional<json>(const k8s::Ref&)>& find) {
  std::string service, secret;
  bool has_port = true;
  for (const auto& ref : candidates(release, pattern)) {
    std::string& found = ref.type == "Service" ? service : secret;
    const auto object = found.empty() ? find(ref) : std::nullopt;
    if (!object) continue;
    found = ref.name;
    if (ref.type == "Service") has_port = offers(*object, pattern.port);
  }
  if (service.empty()) service = rendered(pattern.services.front(), release);
  json where = {{"name", service}, {"namespace", release.space}};
  if (pattern.port != 0 && has_port) where["port"] = pattern.port;  // else the one that the release gave its Service
  json discovery = {{"service", std::move(where)}};
  if (!secret.empty()) {
    discovery["secret"] = {{"name", secret}, {"namespace", release.space}};
    if (!pattern.password_key.empty()) discovery["secret"]["passwordKey"] = pattern.password_key;
  }
  json spec = {{"type", pattern.type},
               {"discovery", std::move(discovery)},
               {"metadata",
                {{"helm_release", release.name},
                 {"helm_chart", pattern.chart},
                 {"helm_version", release.version},
                 {"namespace", release.space}}}};
  if (!pattern.capabilities.empty()) spec["capabilities"] = pattern.capabilities;
  return {{"apiVersion", kPrismBackends.api_version()},
          {"kind", kPrismBackends.object},
          {"metadata",
           {{"name", name},
            // A slash cannot be in a label's value: the chart with its repository is an annotation.
            {"labels",
             {{kAutoDiscovered, "true"},
              {kHelmRelease, release.name.substr(0, kMaxLabel)},
              {kHelmChart, after_slash(pattern.chart).substr(0, kMaxLabel)}}},
            {"annotations", {{kHelmChart, pattern.chart}, {kReleaseId, release.space + "/" + release.name}}}}},
          {"spec", std::move(spec)}};
}

}  // namespace driftd::op
