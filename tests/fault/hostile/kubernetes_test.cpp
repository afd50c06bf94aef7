// SPDX-License-Identifier: Apache-2.0
// What somebody may do who may write ConfigMaps, Secrets or Services in one watched namespace.
#include <nlohmann/json.hpp>

#include "attacked.hpp"
#include "support/kube.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class HostileTenant : public Attacked {
 protected:
  HostileTenant() { kube_.create_namespace("tenant"); }
  void watch(const std::string& more = {}) {
    begin("  - name: cluster\n    provider: k8s\n    settings: { server: \"" + kube_.server() + "\", tls: { ca_file: \"" + kube_.ca_file() +
              "\" }, token_file: \"" + kube_.file("token") + "\", namespaces: [tenant], exclude: [endpoint_slice]" + more + " }\n",
          {"cluster"});
  }
  std::string path(const std::string& plural, const std::string& name = {}) const {
    return "/api/v1/namespaces/tenant/" + plural + (name.empty() ? "" : "/" + name);
  }
  void create_map(const std::string& name, const std::string& key, const std::string& value) const {
    kube_.create(path("configmaps"), {{"metadata", {{"name", name}}}, {"data", {{key, value}}}});
  }
  void set(const std::string& name, const std::string& key, const std::string& value) const {
    kube_.patch(path("configmaps", name), {{"data", {{key, value}}}});
  }
  /// The cluster is judged still: a change of another object is its drift.
  testing::AssertionResult cluster_is_watched() {
    const std::string value = "value-" + std::to_string(++values_);
    set("quiet", "greeting", value);
    const auto told = [&] {
      const auto found = drifts("cluster");
      return std::any_of(found.begin(), found.end(), [&](const auto& drift) { return drift.dump().find(value) != std::string::npos; });
    };
    if (eventually(told, seconds(20))) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "not told: " << value << "\n" << agent_->log() << agent_->cli({"backends"}).out;
  }

  KubeServer kube_;
  int values_ = 0;
};

/// `count` aliases of one scalar of `bytes`.
std::string alias_bomb(std::size_t bytes, int count) {
  std::string out = "a: &a \"" + std::string(bytes, 'x') + "\"\nb: [";
  for (int i = 0; i < count; ++i) out += i == 0 ? "*a" : ",*a";
  return out + "]\n";
}

std::string nested_aliases(int depth) {
  std::string out = "l0: &l0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < depth; ++i) {
    const std::string before = "*l" + std::to_string(i - 1);
    out += "l" + std::to_string(i) + ": &l" + std::to_string(i) + " [";
    for (int n = 0; n < 10; ++n) out += (n == 0 ? "" : ",") + before;
    out += "]\n";
  }
  return out;
}

TEST_F(HostileTenant, AConfigMapThatGrowsWhenItIsReadCostsItsOwnVerdictAlone) {
  create_map("quiet", "greeting", "hello");
  const std::vector<std::pair<std::string, std::string>> bombs{
      {"aliases.yaml", alias_bomb(800'000, 3'000)},
      {"nested.yaml", nested_aliases(12)},
      {"deep.yaml", std::string(400'000, '[')},
      {"deep.json", std::string(400'000, '[')},
      {"flow.yaml", "a: " + std::string(200'000, '{')},
      {"huge.properties", std::string(400'000, '\\')},
      {"number.json", "{\"a\":1e999999999}"},
      {"pem.pem", [] {
         std::string out;
         for (int i = 0; i < 8'000; ++i) out += "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
         return out;
       }()}};
  for (const auto& [key, value] : bombs) create_map(key, key, "a: 1");
  ASSERT_NO_FATAL_FAILURE(watch());
  for (const auto& [key, value] : bombs) {
    set(key, key, value);
    EXPECT_TRUE(cluster_is_watched()) << key;
  }
  ASSERT_NO_FATAL_FAILURE(expect_unharmed());
  agent_->kill();
  agent_->start();  // with the bombs there from the start
  pid_ = agent_->pid();
  ASSERT_TRUE(eventually([&] { return agent_->established({"cluster", "cache"}); }, seconds(60))) << agent_->log();
  EXPECT_TRUE(cluster_is_watched());
  expect_unharmed();
}

TEST_F(HostileTenant, APoisonousReleaseSecretBlindsNobody) {
  create_map("quiet", "greeting", "hello");
  ASSERT_NO_FATAL_FAILURE(watch());
  for (const int depth : {300, 100'000}) {
    std::string nested = "1";
    nested = std::string(static_cast<std::size_t>(depth), '[') + nested + std::string(static_cast<std::size_t>(depth), ']');
    const std::string release = R"({"name":"evil","version":1,"info":{"status":"deployed"},"config":{"a":)" + nested + "}}";
    const std::string file = dir_.write("release.json", release);
    const Output packed = run({"sh", "-c", "gzip -9 -c '" + file + "' | base64 -w0"});
    ASSERT_EQ(packed.code, 0);
    kube_.create(path("secrets"), {{"metadata",
                                    {{"name", "sh.helm.release.v1.evil" + std::to_string(depth) + ".v1"},
                                     {"labels", {{"owner", "helm"}, {"name", "evil"}, {"status", "deployed"}, {"version", "1"}}}}},
                                   {"type", "helm.sh/release.v1"},
                                   {"stringData", {{"release", packed.out}}}});
    EXPECT_TRUE(cluster_is_watched()) << depth;
  }
  EXPECT_EQ(agent_->backend("cluster")->at("worker").value("crashes", 0), 0) << agent_->backend("cluster")->dump();
  EXPECT_EQ(agent_->log().find("killed by signal"), std::string::npos) << agent_->log();
  expect_unharmed();
}

}  // namespace
}  // namespace driftd::test
