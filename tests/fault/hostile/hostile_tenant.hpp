// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "attacked.hpp"
#include "support/kube.hpp"

namespace driftd::test {

/// An agent that watches a cluster beside its neighbour, and what a tenant can do there: somebody who may write
/// ConfigMaps, Secrets, Services or PrismBackends in one watched namespace.
class HostileTenant : public Attacked {
 protected:
  using json = nlohmann::json;
  using seconds = std::chrono::seconds;

  HostileTenant() { kube_.create_namespace("tenant"); }
  void watch(const std::string& more = {}) {
    start_agent("  - name: cluster\n    provider: k8s\n    settings: { server: \"" + kube_.server() +
                    "\", tls: { ca_file: \"" + kube_.ca_file() + "\" }, token_file: \"" + kube_.file("token") +
                    "\", namespaces: [" + namespaces_ + "], exclude: [endpoint_slice]" + more + " }\n",
                {"cluster"});
  }
  std::string path(const std::string& plural, const std::string& name = {}) const {
    return "/api/v1/namespaces/tenant/" + plural + (name.empty() ? "" : "/" + name);
  }
  void create_map(const std::string& name, const std::string& key, const std::string& value) const {
    kube_.create(path("configmaps"), {{"metadata", {{"name", name}}}, {"data", {{key, value}}}});
  }
  void set_in_map(const std::string& name, const std::string& key, const std::string& value) const {
    kube_.patch(path("configmaps", name), {{"data", {{key, value}}}});
  }
  /// Changes the ConfigMap `quiet` and returns whether that becomes a drift: then the cluster is still judged.
  testing::AssertionResult cluster_is_watched() {
    const std::string value = "value-" + std::to_string(++values_);
    set_in_map("quiet", "greeting", value);
    const auto appeared = [&] {
      const auto found = drifts("cluster");
      return std::any_of(found.begin(), found.end(),
                         [&](const auto& drift) { return drift.dump().find(value) != std::string::npos; });
    };
    if (eventually(appeared, seconds(20))) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "cluster: no drift contains: " << value << "\n"
                                       << agent_->log() << agent_->cli({"backends"}).out;
  }

  /// Creates a Service and a Secret that the k8s provider discovers as the backend of that name.
  void define(const std::string& name_space, const std::string& backend, int port, const std::string& password) const {
    const json labels{
        {"prism.io/backend", "true"}, {"prism.io/backend-name", backend}, {"prism.io/backend-type", "redis"}};
    kube_.create("/api/v1/namespaces/" + name_space + "/services",
                 {{"metadata", {{"name", backend}, {"labels", labels}}},
                  {"spec", {{"ports", {{{"name", "p"}, {"port", port}}}}}}});
    kube_.create_secret(name_space, backend, {{"password", password}}, labels);
  }
  /// Changes the port and the password of such a backend.
  void redefine(const std::string& name_space, const std::string& backend, int port,
                const std::string& password) const {
    const std::string space = "/api/v1/namespaces/" + name_space;
    kube_.patch(space + "/secrets/" + backend, {{"stringData", {{"password", password}}}});
    kube_.patch(space + "/services/" + backend, {{"spec", {{"ports", {{{"name", "p"}, {"port", port}}}}}}});
  }
  /// Stores a revision of a Helm release as Helm does. `in_secret` is the release's name in the name of the Secret.
  void release_as(const std::string& name, const std::string& in_secret, int version,
                  const std::string& release) const {
    const std::string file = dir_.write("release.json", release);
    const Output packed = run({"sh", "-c", "gzip -9 -c '" + file + "' | base64 -w0"});
    ASSERT_EQ(packed.code, 0);
    ASSERT_LT(packed.out.size(), 100'000u);
    const std::string number = std::to_string(version);
    kube_.create(path("secrets"),
                 {{"metadata",
                   {{"name", "sh.helm.release.v1." + in_secret + ".v" + number},
                    {"labels", {{"owner", "helm"}, {"name", name}, {"status", "deployed"}, {"version", number}}}}},
                  {"type", "helm.sh/release.v1"},
                  {"stringData", {{"release", packed.out}}}});
  }
  void release(const std::string& name, int version, const std::string& chart_version,
               const std::string& config) const {
    release_as(name, name, version,
               R"({"name":")" + name + R"(","version":)" + std::to_string(version) +
                   R"(,"info":{"status":"deployed"},"chart":{"metadata":{"name":"app","version":")" + chart_version +
                   R"("}},"config":)" + config + "}");
  }
  /// Waits until the agent has processed everything in the cluster: the events of the watch, and then a full cycle.
  void settle() {
    ASSERT_TRUE(cluster_is_watched());
    ASSERT_EQ(agent_->cli({"refresh", "cluster", "--full"}).code, 0) << agent_->log();
    ASSERT_TRUE(cluster_is_watched());
  }
  /// Returns the subjects of the events about a backend, without `backend.<name>.`.
  std::vector<std::string> subjects(const std::string& backend) const {
    std::vector<std::string> out;
    std::istringstream lines(agent_->cli({"events", "--limit", "1000", "-o", "json"}).out);
    for (std::string line; std::getline(lines, line);) {
      const std::string subject = json::parse(line).at("subject");
      if (subject.starts_with("backend." + backend + ".")) out.push_back(subject.substr(9 + backend.size()));
    }
    return out;
  }
  /// Waits until events report the new endpoint and the new password of a backend.
  bool reports_new_endpoint_and_password(const std::string& backend) const {
    return eventually(
        [&] {
          const auto seen = subjects(backend);
          return std::ranges::find(seen, "credentials.rotated") != seen.end() &&
                 std::ranges::find(seen, "endpoint.changed") != seen.end();
        },
        seconds(30));
  }
  /// Waits until the agent asks, by a pending drift, who may register this backend.
  bool asks_who_registers(const std::string& backend) const {
    return eventually(
        [&] {
          const auto open = drifts(backend);
          return std::ranges::any_of(open, [&](const auto& d) {
            return d.value("resource", "") == "claim/" + backend && d.value("status", "") == "pending";
          });
        },
        seconds(20));
  }

  /// Waits until a changed ConfigMap is a drift, or, if its new value is too large to be read, is unknown with the
  /// reason.
  testing::AssertionResult has_verdict(const std::string& name, bool too_large) {
    if (!too_large) return drift_appears("cluster", "\"changed\"", "tenant/" + name);
    std::string shown;
    const auto says_why = [&] {
      shown = agent_->cli({"explain", "cluster", "config_map/tenant/" + name, "--all"}).out;
      return shown.find("cannot be compared") != std::string::npos;
    };
    if (eventually(says_why, seconds(30)) && drifts("cluster", "tenant/" + name).empty())
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << "expected unknown with its reason, found: " << shown.substr(0, 2'000);
  }

  KubeServer kube_;
  std::string namespaces_ = "tenant";
  int values_ = 0;
};

}  // namespace driftd::test
