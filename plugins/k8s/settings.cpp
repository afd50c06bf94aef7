// SPDX-License-Identifier: Apache-2.0
#include "k8s/settings.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace driftd::k8s {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

constexpr std::size_t kMaxFile = 1u << 20;
constexpr std::size_t kMaxNamespaces = 100;  // each kind is watched in each of them

[[noreturn]] void bad(const std::string& text) { throw sdk::Failure(DRIFTD_INVALID, text); }

std::string read_small(const std::string& path, const std::string& setting) {
  std::ifstream in(path, std::ios::binary);
  if (!in) bad("settings." + setting + ": " + path + ": " + std::strerror(errno));
  std::string out(kMaxFile, '\0');
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<std::size_t>(in.gcount()));
  return out;
}

void take_tls(const json& tls, http::Tls& out) {
  out.ca_file = tls.value("ca_file", out.ca_file);
  if (!out.ca_file.empty()) out.ca_pem.clear();
  if (tls.contains("certificate_file")) {
    out.certificate_file = tls.at("certificate_file");
    out.key_file = tls.value("key_file", out.certificate_file);
    out.certificate_pem.clear();
    out.key_pem.clear();
  }
  out.server_name = tls.value("server_name", out.server_name);
}

void take_service_account(const std::string& folder, Settings& out) {
  if (folder.empty()) return;
  out.server = "https://kubernetes.default.svc";
  out.tls.ca_file = folder + "/ca.crt";
  out.identification.token_file = folder + "/token";
}

void take_connection(const json& root, Settings& out) {
  const bool insecure = root.value("insecure", false);
  const std::string kubeconfig = root.value("kubeconfig", ""), account = root.value("service_account", "");
  if (!kubeconfig.empty() && !account.empty())
    bad("settings: both kubeconfig and service_account; expected one of them");
  const bool named = root.contains("token") || root.contains("token_file");
  take_service_account(account, out);
  if (!kubeconfig.empty()) {
    const std::string folder = kubeconfig.substr(0, kubeconfig.rfind('/') + 1);
    apply_kubeconfig(out, read_small(kubeconfig, "kubeconfig"), {folder, root.value("context", ""), insecure, !named});
  }
  out.server = root.value("server", out.server);
  while (!out.server.empty() && out.server.back() == '/') out.server.pop_back();
  if (out.server.empty()) {
    bad("settings: no API server is named; expected server: https://host:port, kubeconfig: /path, or service_account: "
        "/var/run/secrets/kubernetes.io/serviceaccount");
  }
  if (!out.server.starts_with("https://")) bad("settings.server: '" + out.server + "'; expected https://host:port");
  if (root.contains("tls")) take_tls(root.at("tls"), out.tls);
  if (named) out.identification = {root.value("token", ""), root.value("token_file", ""), {}};
  if (root.contains("token") && root.contains("token_file"))
    bad("settings: both token and token_file; expected one of them");
  if (insecure) out.tls.verify = false;
}

std::vector<Custom> objects_of(const json& list) {
  std::vector<Custom> out;
  for (const auto& each : list) {
    Custom custom{each.value("group", ""), each.value("version", ""), each.at("kind"),
                  each.value("fields", std::map<std::string, std::string>{})};
    if (custom.kind.empty()) bad("settings.objects: an element names no kind");
    out.push_back(std::move(custom));
  }
  return out;
}

}  // namespace

Settings parse_settings(std::string_view text) {
  const auto root = json::parse(text, nullptr, false);
  if (!root.is_object()) bad("settings: expected a JSON object");
  Settings out;
  try {
    take_connection(root, out);
    out.namespaces = root.value("namespaces", Strings{});
    if (out.namespaces.size() > kMaxNamespaces) bad("settings.namespaces: more than 100; leave it out to watch all");
    out.selectors = root.value("selectors", out.selectors);
    out.labels = root.value("labels", Strings{});
    out.annotations = root.value("annotations", Strings{});
    out.group = root.value("group", out.group);
    out.discover = root.value("discover", out.group + "/backend=true");
    out.objects = objects_of(root.value("objects", json::array()));
    out.replica_owners = root.value("replica_owners", Strings{"kube-controller-manager", "horizontal-pod-autoscaler",
                                                              "keda*", "vpa*", "*autoscaler*"});
    out.cluster_domain = root.value("cluster_domain", out.cluster_domain);
    out.page = root.value("page", out.page);
    out.streaming_lists = root.value("streaming_lists", out.streaming_lists);
    out.connect = std::chrono::milliseconds(root.value("connect_timeout_ms", 5000));
    out.call = std::chrono::milliseconds(root.value("call_timeout_ms", 20'000));
    out.silence = std::chrono::milliseconds(root.value("watch_silence_ms", 90'000));
    out.scope.include = root.value("include", Strings{});
    out.scope.exclude = root.value("exclude", Strings{});
  } catch (const json::exception& e) {
    bad(std::string("settings: ") + e.what());
  }
  return out;
}

}  // namespace driftd::k8s
