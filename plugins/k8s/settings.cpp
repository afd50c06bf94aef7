// SPDX-License-Identifier: Apache-2.0
#include "k8s/settings.hpp"

#include "common/settings_reader.hpp"

namespace driftd::k8s {
namespace {

using common::SettingsReader;

constexpr std::size_t kMaxNamespaces = 100;  // each kind is watched in each of them
constexpr std::uint64_t kMaxPage = 5000;
constexpr std::chrono::minutes kMaxConnect{1}, kMaxTimeout{10};

void read_tls(SettingsReader from, http::Tls& out) {
  out.ca_file = from.text("ca_file", out.ca_file);
  if (!out.ca_file.empty()) out.ca_pem.clear();
  const bool certified = from.has("certificate_file");
  const std::string certificate = from.text("certificate_file"), key = from.text("key_file", certificate);
  if (certified) {
    out.certificate_file = certificate;
    out.key_file = key;
    out.certificate_pem.clear();
    out.key_pem.clear();
  }
  out.server_name = from.text("server_name", out.server_name);
  from.finish();
}

/// Takes server and credential from the kubeconfig or the service account that the settings name.
void read_source(SettingsReader& from, bool named, bool insecure, Settings& out) {
  const std::string kubeconfig = from.text("kubeconfig"), account = from.text("service_account");
  const std::string context = from.text("context");
  if (!kubeconfig.empty() && !account.empty())
    common::refuse_setting("settings", "kubeconfig or service_account", "both", "remove one of them");
  if (!account.empty()) kube::use_service_account(out, account);
  if (kubeconfig.empty()) return;
  const std::string folder = kubeconfig.substr(0, kubeconfig.rfind('/') + 1);
  kube::apply_kubeconfig(out, kube::read_kubeconfig(kubeconfig), {folder, context, insecure, !named});
}

void read_server(SettingsReader& from, Settings& out) {
  out.server = from.text("server", out.server);
  while (!out.server.empty() && out.server.back() == '/') out.server.pop_back();
  if (out.server.empty()) {
    from.refuse("server", "https://host:port of the API server", "nothing",
                "add server, or kubeconfig: /path, or service_account: /var/run/secrets/kubernetes.io/serviceaccount");
  }
  if (!out.server.starts_with("https://")) from.refuse("server", "https://host:port", "'" + out.server + "'");
}

void read_connection(SettingsReader& from, Settings& out) {
  const bool insecure = from.flag("insecure", false);
  const bool token = from.has("token"), token_file = from.has("token_file");
  read_source(from, token || token_file, insecure, out);
  read_server(from, out);
  if (from.has("tls")) read_tls(from.object("tls"), out.tls);
  if (token && token_file) common::refuse_setting("settings", "token or token_file", "both", "remove one of them");
  if (token || token_file) out.identification = {from.text("token"), from.text("token_file"), {}};
  if (insecure) out.tls.verify = false;
}

std::vector<Custom> read_objects(SettingsReader& from) {
  std::vector<Custom> out;
  for (auto& each : from.objects("objects")) {
    out.push_back({each.text("group"), each.text("version"),
                   each.required_text("kind", "the kind of a custom resource, for example Budget"),
                   each.text_map("fields")});
    each.finish();
  }
  return out;
}

void read_selection(SettingsReader& from, Settings& out) {
  out.namespaces = from.texts("namespaces");
  if (out.namespaces.size() > kMaxNamespaces) {
    from.refuse("namespaces", "a maximum of " + std::to_string(kMaxNamespaces), std::to_string(out.namespaces.size()),
                "leave it out to watch all");
  }
  out.selectors = from.text_map("selectors");
  out.labels = from.texts("labels", out.labels);
  out.annotations = from.texts("annotations", out.annotations);
  out.group = from.text("group", out.group);
  out.discover = from.text("discover", out.group + "/backend=true");
  out.objects = read_objects(from);
  out.replica_owners = from.texts(
      "replica_owners", {"kube-controller-manager", "horizontal-pod-autoscaler", "keda*", "vpa*", "*autoscaler*"});
  if (from.has("apply")) {
    auto apply = from.object("apply");
    out.take_over = apply.texts("take_over", out.take_over);
    apply.finish();
  }
  out.scope = common::read_scope(from);
}

}  // namespace

Settings parse_settings(std::string_view text) {
  const auto json = common::parse_settings_json(text);
  SettingsReader from(json);
  Settings out;
  read_connection(from, out);
  read_selection(from, out);
  out.cluster_domain = from.text("cluster_domain", out.cluster_domain);
  out.page = from.number("page", out.page, {1, kMaxPage});
  out.streaming_lists = from.flag("streaming_lists", out.streaming_lists);
  out.connect = from.ms("connect_timeout_ms", out.connect, kMaxConnect);
  out.call = from.ms("call_timeout_ms", out.call, kMaxTimeout);
  out.silence = from.ms("watch_silence_ms", out.silence, kMaxTimeout);
  from.finish();
  return out;
}

}  // namespace driftd::k8s
