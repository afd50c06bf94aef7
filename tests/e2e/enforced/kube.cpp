// SPDX-License-Identifier: Apache-2.0
#include "support/kube.hpp"
#include "system.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

constexpr const char* kManager = "?fieldManager=kubectl-edit";  // whose fields the agent may overrule by default

KubeServer& server() {
  static KubeServer one;
  return one;
}

/// A ConfigMap in a namespace of its own, one value of which is put back. The account of the agent may patch or not.
class KubeConfigMap final : public System {
 public:
  KubeConfigMap() {
    static int number = 0;
    space_ = "enforced-" + std::to_string(++number);
    server().create_namespace(space_);
    server().create(all() + kManager, {{"metadata", {{"name", "web"}}}, {"data", {{"mode", "value-0"}}}});
    const json read = {{"apiGroups", {""}}, {"resources", {"configmaps"}}, {"verbs", {"get", "list", "watch"}}};
    token_ = server().account(space_, "driftd", json::array({read}));
  }
  std::string backend() const override {
    return "provider: k8s, settings: { server: \"" + server().server() + "\", tls: { ca_file: \"" + server().ca_file() +
           "\" }, token: \"${env:KUBE_TOKEN}\", namespaces: [" + space_ + "], include: [\"config_map/" + space_ +
           "/web\"] }";
  }
  std::map<std::string, std::string> secrets() const override { return {{"KUBE_TOKEN", token_}}; }
  std::string resource() const override { return "config_map/" + space_ + "/web"; }
  std::string path() const override { return "data.mode"; }
  std::string set_value(int number) override {
    const std::string value = "value-" + std::to_string(number);
    server().patch(one() + kManager, {{"data", {{"mode", value}}}});
    return value;
  }
  std::string value() const override {
    const auto answer = server().request("GET", one());
    return answer.status == 200 ? answer.body.at("data").at("mode").get<std::string>() : std::string();
  }
  void remove() override { server().remove(one()); }
  std::string names() const override {
    std::string out;
    const json list = server().get(all());
    for (const auto& each : list.at("items")) out += each.at("metadata").at("name").get<std::string>() + " ";
    return out;
  }
  void grant(bool may_write) override {
    const std::string bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + space_ + "/rolebindings";
    if (!may_write) {
      (void)server().request("DELETE", bindings + "/enforce");
      return;
    }
    server().apply(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: enforce, namespace: " + space_ +
        "}\nrules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [patch]}]\n---\n" +
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: enforce, namespace: " + space_ +
        "}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: enforce}\n" +
        "subjects: [{kind: ServiceAccount, name: driftd, namespace: " + space_ + "}]\n");
  }
  std::string missing_right() const override { return "patch"; }
  void set_and_refuse() override {
    server().patch(one() + kManager, {{"data", {{"mode", "value-1"}}}, {"immutable", true}});
  }
  std::string refusal() const override { return "immutable"; }

 private:
  std::string all() const { return "/api/v1/namespaces/" + space_ + "/configmaps"; }
  std::string one() const { return all() + "/web"; }
  std::string space_, token_;
};

}  // namespace

std::unique_ptr<System> make_kube() { return std::make_unique<KubeConfigMap>(); }

}  // namespace driftd::test
