// SPDX-License-Identifier: Apache-2.0
// The size of an entry of the change log where a resource is large: a Deployment that driftd put back.
#include <filesystem>
#include <sstream>

#include "line.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

/// A pod of two containers, with probes, resources, mounts and environment, as the packaged one has them.
json workload() {
  const json security = {{"allowPrivilegeEscalation", false}, {"readOnlyRootFilesystem", true}};
  const json probe = {{"httpGet", {{"path", "/live"}, {"port", 8080}}}, {"periodSeconds", 20}, {"timeoutSeconds", 6}};
  json app = {{"name", "app"},
              {"image", "registry.example.net/web:1.4.2"},
              {"args", {"--verbose", "--listen=:8080"}},
              {"ports", {{{"name", "http"}, {"containerPort", 8080}}}},
              {"env", {{{"name", "MODE"}, {"value", "fast"}}, {{"name", "REGION"}, {"value", "west"}}}},
              {"securityContext", security},
              {"resources", {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}, {"limits", {{"memory", "512Mi"}}}}},
              {"livenessProbe", probe},
              {"readinessProbe", probe},
              {"volumeMounts", {{{"name", "conf"}, {"mountPath", "/etc/web"}, {"readOnly", true}}}}};
  json side = app;
  side["name"] = "side";
  side["ports"] = {{{"name", "admin"}, {"containerPort", 8081}}};
  const json labels = {{"app", "web"}, {"team", "payments"}};
  return {{"apiVersion", "apps/v1"},
          {"kind", "Deployment"},
          {"metadata", {{"name", "web"}, {"labels", labels}}},
          {"spec",
           {{"replicas", 3},
            {"selector", {{"matchLabels", {{"app", "web"}}}}},
            {"template",
             {{"metadata", {{"labels", labels}}},
              {"spec",
               {{"volumes", {{{"name", "conf"}, {"configMap", {{"name", "web"}}}}}}, {"containers", {app, side}}}}}}}}};
}

TEST_F(K8sLine, AnEntryOfTheChangeLogHasTheWholeDeploymentInAboutFourKilobytes) {
  if (!std::filesystem::exists(Agent::build("bin/driftd-grpc")))
    GTEST_SKIP() << "LOUD: this build has no gRPC, the size of an entry is not tested";
  const std::string all = "/apis/apps/v1/namespaces/prod/deployments";
  kube.create(all, workload());
  const std::string socket = dir.file("s.sock"), lines = dir.file("changes.jsonl");
  const Child sidecar({Agent::binary(), "changelog-sidecar", "--listen", "unix://" + socket, "--output", lines}, {});
  Agent agent(dir, "change_log: { socket: \"" + socket +
                       "\" }\nenforce: { enabled: true, minimum_age: 0s }\ndefaults: { interval: 500ms }\nbackends:\n  "
                       "- name: cluster\n    provider: k8s\n    enforce: true\n    policy: { config: enforce }\n    "
                       "settings: { server: \"https://127.0.0.1:" +
                       std::to_string(kube.port()) + "\", " + admin_login() +
                       ", namespaces: [prod], include: [deployment], apply: { take_over: [unknown] } }\n");
  ASSERT_NO_FATAL_FAILURE(begin(agent));
  kube.patch(all + "/web", {{"spec", {{"replicas", 0}}}});
  ASSERT_TRUE(
      eventually([&] { return std::filesystem::exists(lines) && std::filesystem::file_size(lines) > 0; }, seconds(60)))
      << agent.cli({"enforce", "status"}).out << agent.log();
  std::istringstream text(read_file(lines));
  std::string line;
  std::getline(text, line);
  const json entry = json::parse(line);
  EXPECT_EQ(entry.at("kind"), "deployment");
  EXPECT_EQ(entry.at("name"), "prod/web");
  EXPECT_EQ(entry.at("result").at("status"), "success");
  const std::size_t states = entry.at("desired").dump().size() + entry.at("observed").dump().size();
  std::printf(
      "an entry of a Deployment with two containers has %zu bytes as a line, %zu of them its two states; "
      "docs/change-log.md expects about 4096\n",
      line.size() + 1, states);
  EXPECT_LT(line.size(), 2u * 4'096u);
}

}  // namespace
}  // namespace driftd::test
