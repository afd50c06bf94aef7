// SPDX-License-Identifier: Apache-2.0
#include "operator_world.hpp"

#include <algorithm>
#include <csignal>

namespace driftd::test {
namespace {

using nlohmann::json;

std::string packaged(const std::string& file) {
  return read_file(std::string(DRIFTD_SOURCE_DIR) + "/packaging/kubernetes/" + file);
}

/// The documents of a manifest but for those of these kinds, which need a controller that no test has.
std::string without(const std::string& yaml, const std::vector<std::string>& kinds) {
  std::string out;
  for (std::size_t from = 0; from < yaml.size();) {
    const std::size_t end = std::min(yaml.find("\n---\n", from), yaml.size());
    const std::string document = yaml.substr(from, end - from);
    from = end + 5;
    bool left_out = false;
    for (const auto& kind : kinds) left_out = left_out || document.find("\nkind: " + kind + "\n") != std::string::npos;
    if (!left_out) out += (out.empty() ? "" : "\n---\n") + document;
  }
  return out;
}

}  // namespace

std::string operator_kubeconfig(const KubeServer& kube, const TempDir& dir, int port) {
  return dir.write("operator-" + std::to_string(port) + ".kubeconfig",
                   "apiVersion: v1\nkind: Config\ncurrent-context: test\nclusters:\n- name: test\n  cluster: "
                   "{server: \"https://127.0.0.1:" +
                       std::to_string(port) + "\", certificate-authority: \"" + kube.ca_file() +
                       "\"}\nusers:\n- name: operator\n  user: {token: \"" +
                       kube.token_of("driftd", "driftd-operator") +
                       "\"}\ncontexts:\n- name: test\n  context: {cluster: test, user: operator}\n");
}

OperatorProcess::OperatorProcess(const KubeServer& kube, const TempDir& dir, const std::string& name,
                                 std::vector<std::string> options)
    : log_(dir.file(name + ".log")),
      port_(free_port()) {
  const auto has = [&](const char* word) { return std::find(options.begin(), options.end(), word) != options.end(); };
  std::vector<std::string> command = {Agent::build("bin/driftd-operator"), "--namespace", "driftd", "--listen",
                                      "127.0.0.1:" + std::to_string(port_)};
  if (!has("--kubeconfig")) {
    command.insert(command.end(), {"--kubeconfig", operator_kubeconfig(kube, dir, kube.port())});
  }
  if (!has("--lease-duration")) {
    for (const char* word : {"--lease-duration", "3s", "--renew-deadline", "2s"}) command.emplace_back(word);
  }
  for (const char* word : {"--retry-period", "500ms", "--log-level", "debug"}) command.emplace_back(word);
  command.insert(command.end(), options.begin(), options.end());
  child_ = Child(command, {log_, {{"POD_NAME", name}}, {}});
}

std::string OperatorProcess::get(const std::string& path, int& status) const {
  const Output out =
      run({"curl", "-sS", "-m", "10", "-w", "\n%{http_code}", "http://127.0.0.1:" + std::to_string(port_) + path});
  const std::size_t last = out.out.rfind('\n');
  status = out.code == 0 && last != std::string::npos ? std::stoi(out.out.substr(last + 1)) : 0;
  return out.out.substr(0, last);
}

double OperatorProcess::metric(const std::string& series) const {
  int status = 0;
  const std::string text = "\n" + get("/metrics", status);
  const std::size_t at = text.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
}

int OperatorProcess::probe(const std::string& path) const {
  int status = 0;
  get(path, status);
  return status;
}

int OperatorProcess::stop() {
  child_.signal(SIGTERM);
  return child_.wait(std::chrono::seconds(15));
}

OperatorWorld::OperatorWorld() {
  kube.create_namespace("driftd");
  kube.create_namespace("infrastructure");
  kube.apply(packaged("crds/prismbackends.yaml"));
  kube.apply(packaged("crds/prismpatterns.yaml"));
  const auto is_served = [&](const std::string& path) { return kube.request("GET", path).status == 200; };
  if (!eventually([&] { return is_served(backends()) && is_served("/apis/prism.io/v1alpha1/prismpatterns"); })) {
    throw std::runtime_error("the CRDs of prism.io are not served");
  }
  kube.apply(without(packaged("operator.yaml"), {"Deployment"}));
}

json OperatorWorld::sample(const std::string& name) const {
  return {
      {"apiVersion", "prism.io/v1alpha1"},
      {"kind", "PrismBackend"},
      {"metadata", {{"name", name}}},
      {"spec",
       {{"type", "redis"},
        {"discovery",
         {{"service", {{"name", "redis-master"}, {"namespace", "infrastructure"}, {"port", 6379}}},
          {"secret", {{"name", "redis"}, {"namespace", "infrastructure"}, {"passwordKey", "redis-password"}}}}},
        {"capabilities", {"keyvalue_basic", "keyvalue_scan", "keyvalue_ttl", "keyvalue_transactional", "pubsub_basic"}},
        {"metadata",
         {{"helm_release", "redis"},
          {"helm_chart", "bitnami/redis"},
          {"helm_version", "19.0.0"},
          {"region", "us-west-2"},
          {"env", "production"}}}}}};
}

void OperatorWorld::make_service(const std::string& name, int port, const std::string& space) const {
  kube.create(in(space, "services"),
              {{"metadata", {{"name", name}}}, {"spec", {{"ports", json::array({{{"port", port}}})}}}});
}

json OperatorWorld::status(const std::string& backend) const {
  const auto answer = kube.request("GET", backends() + "/" + backend);
  return answer.status == 200 && answer.body.contains("status") ? answer.body.at("status") : json::object();
}

std::string OperatorWorld::message(const std::string& backend) const {
  const json found = status(backend);
  for (const auto& each : found.value("conditions", json::array())) {
    if (each.at("type") == "Ready") return each.value("message", "");
  }
  return {};
}

std::string OperatorWorld::condition(const std::string& backend, const std::string& type) const {
  const json found = status(backend);
  for (const auto& each : found.value("conditions", json::array())) {
    if (each.at("type") == type) {
      return each.at("status").get<std::string>() + " " + each.at("reason").get<std::string>();
    }
  }
  return {};
}

}  // namespace driftd::test
