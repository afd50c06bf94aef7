// SPDX-License-Identifier: Apache-2.0
// Attacks by a tenant: somebody who may write ConfigMaps, Secrets, Services or PrismBackends in one watched namespace.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

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

/// Returns YAML with `count` aliases of one scalar of `bytes` bytes.
std::string alias_bomb(std::size_t bytes, int count) {
  std::string out = "a: &a \"" + std::string(bytes, 'x') + "\"\nb: [";
  for (int i = 0; i < count; ++i) out += i == 0 ? "*a" : ",*a";
  return out + "]\n";
}

/// Returns YAML in which each of `depth` lines has ten aliases of the line before: 10^depth values.
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
  // reading these would cost more than the limits of docs/formats.md, so they are unknown; the others are texts
  const std::set<std::string> too_large{"aliases.yaml", "nested.yaml", "deep.yaml", "flow.yaml"};
  for (const auto& [key, value] : bombs) create_map(key, key, "a: 1");
  ASSERT_NO_FATAL_FAILURE(watch());
  for (const auto& [key, value] : bombs) {
    set_in_map(key, key, value);
    EXPECT_TRUE(cluster_is_watched()) << key;
    EXPECT_TRUE(has_verdict(key, too_large.contains(key))) << key;
  }
  ASSERT_NO_FATAL_FAILURE(expect_unharmed());
  agent_->kill();
  agent_->start();  // now the bombs exist from the start
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
    nested =
        std::string(static_cast<std::size_t>(depth), '[') + nested + std::string(static_cast<std::size_t>(depth), ']');
    const std::string release =
        R"({"name":"evil","version":1,"info":{"status":"deployed"},"config":{"a":)" + nested + "}}";
    release_as("evil", "evil" + std::to_string(depth), 1, release);
    EXPECT_TRUE(cluster_is_watched()) << depth;
    ASSERT_EQ(agent_->cli({"refresh", "cluster", "--full"}).code, 0) << agent_->log();
    EXPECT_TRUE(backend_reports("cluster", "tenant/evil: the release")) << depth << ": it is shown as read";
  }
  EXPECT_EQ(agent_->backend("cluster")->at("worker").value("crashes", 0), 0) << agent_->backend("cluster")->dump();
  EXPECT_EQ(agent_->log().find("killed by signal"), std::string::npos) << agent_->log();
  expect_unharmed();
}

/// A Secret of some ten kilobytes unpacks to 33 MB with 11 million values, nearly 1 GB as a tree. This release is
/// reported as unread by its name. The same worker judges the others, also if the bomb exists when the agent starts.
TEST_F(HostileTenant, AReleaseThatUnpacksToMillionsOfValuesCostsItselfAlone) {
  create_map("quiet", "greeting", "hello");
  ASSERT_NO_FATAL_FAILURE(release("calm", 1, "1.0.1", R"({"a":1})"));
  ASSERT_NO_FATAL_FAILURE(watch());
  std::string values;
  for (int i = 0; i < 11'000'000; ++i) values += "{},";
  ASSERT_NO_FATAL_FAILURE(release("bomb", 1, "1.0.1", R"({"a":[)" + values + "{}]}"));
  const auto judged = [&](int version) {
    const std::string mark = "1.0." + std::to_string(version);
    ASSERT_NO_FATAL_FAILURE(release("calm", version, mark, R"({"a":1})"));
    EXPECT_TRUE(drift_appears("cluster", "\"" + mark + "\"", "*calm", seconds(60))) << agent_->log();
    EXPECT_TRUE(cluster_is_watched());
    EXPECT_EQ(agent_->cli({"refresh", "cluster", "--full"}).code, 0) << agent_->log();
    EXPECT_TRUE(backend_reports("cluster", "tenant/bomb")) << agent_->backend("cluster")->dump();
    EXPECT_EQ(agent_->backend("cluster")->at("worker").value("crashes", 0), 0) << agent_->backend("cluster")->dump();
    EXPECT_EQ(agent_->log().find("killed by signal"), std::string::npos) << agent_->log();
  };
  ASSERT_NO_FATAL_FAILURE(judged(2));
  ASSERT_NO_FATAL_FAILURE(expect_unharmed());
  agent_->kill();
  agent_->start();  // now the bomb exists from the start
  pid_ = agent_->pid();
  ASSERT_TRUE(eventually([&] { return agent_->established({"cluster", "cache"}); }, seconds(60))) << agent_->log();
  ASSERT_NO_FATAL_FAILURE(judged(3));
  expect_nothing_deleted("cluster");
  expect_unharmed();
}

TEST_F(HostileTenant, ABackendOfTheConfigIsSpokenForByNobodyWhomTheConfigDoesNotName) {
  create_map("quiet", "greeting", "hello");
  ASSERT_NO_FATAL_FAILURE(watch());
  define("tenant", "cache", 6666, "one");
  ASSERT_NO_FATAL_FAILURE(settle());
  redefine("tenant", "cache", 7777, "two");
  ASSERT_NO_FATAL_FAILURE(settle());
  EXPECT_TRUE(asks_who_registers("cache")) << agent_->cli({"drifts"}).out << agent_->log();
  EXPECT_THAT(subjects("cache"), testing::Contains("config.updated")) << "the question who may register it is an event";
  EXPECT_THAT(subjects("cache"), testing::AllOf(testing::Not(testing::Contains("credentials.rotated")),
                                                testing::Not(testing::Contains("endpoint.changed"))));
  EXPECT_EQ(agent_->cli({"resources", "cache"}).out.find("registration"), std::string::npos)
      << "nothing of the tenant's registration is used";
  expect_unharmed();
}

TEST_F(HostileTenant, TheNameOfADiscoveredBackendIsNotTakenOverFromAnotherNamespace) {
  namespaces_ = "a-tenant, tenant, prod";
  for (const char* each : {"a-tenant", "prod"}) kube_.create_namespace(each);
  create_map("quiet", "greeting", "hello");
  define("prod", "orders", 6379, "canary-own");
  ASSERT_NO_FATAL_FAILURE(watch());
  const auto endpoint = [&] {
    return agent_->backend("orders") ? agent_->backend("orders")->value("endpoint", "") : "none";
  };
  ASSERT_TRUE(eventually([&] { return endpoint() == "orders.prod.svc.cluster.local:6379"; }, seconds(30)))
      << agent_->log();
  define("a-tenant", "orders", 6666, "one");  // it is listed before the one of the owner
  kube_.create(path("services"), {{"metadata", {{"name", "untyped"}, {"labels", {{"prism.io/backend", "true"}}}}},
                                  {"spec", {{"ports", {{{"name", "p"}, {"port", 1}}}}}}});  // it lacks the labels of a
                                                                                            // backend
  ASSERT_NO_FATAL_FAILURE(settle());
  redefine("a-tenant", "orders", 7777, "two");
  ASSERT_NO_FATAL_FAILURE(settle());
  EXPECT_TRUE(asks_who_registers("orders")) << agent_->cli({"drifts"}).out << agent_->log();
  EXPECT_EQ(endpoint(), "orders.prod.svc.cluster.local:6379");
  EXPECT_THAT(subjects("orders"), testing::AllOf(testing::Not(testing::Contains("credentials.rotated")),
                                                 testing::Not(testing::Contains("endpoint.changed"))));

  redefine("prod", "orders", 6380, "canary-new");  // the owner's changes are still reported
  EXPECT_TRUE(reports_new_endpoint_and_password("orders")) << agent_->log();
  for (const char* each : {"services/orders", "secrets/orders"}) {
    kube_.patch("/api/v1/namespaces/prod/" + std::string(each),
                {{"metadata", {{"labels", {{"prism.io/backend", nullptr}}}}}});
  }
  const auto deleted = [&] {  // although the tenant still uses the name
    const auto seen = subjects("orders");
    return std::ranges::find(seen, "deleted") != seen.end();
  };
  EXPECT_TRUE(eventually(deleted, seconds(30))) << agent_->log() << agent_->cli({"backends"}).out;
  EXPECT_EQ(all_output().find("canary-"), std::string::npos);
  expect_unharmed();
}

/// Every tenant may write PrismBackends. None of them may hide another one, whatever it contains and refers to.
TEST_F(HostileTenant, PoisonousPrismBackendsCostNoOtherBackendItsRegistration) {
  namespaces_ = "tenant, prod";
  kube_.create_namespace("prod");
  kube_.install_prism();
  create_map("quiet", "greeting", "hello");
  define("prod", "orders", 6379, "canary-own");
  kube_.create_secret("tenant", "mine", {{"password", "canary-mine"}});
  ASSERT_NO_FATAL_FAILURE(watch());
  const auto endpoint = [&] {
    return agent_->backend("orders") ? agent_->backend("orders")->value("endpoint", "") : "none";
  };
  ASSERT_TRUE(eventually([&] { return endpoint() == "orders.prod.svc.cluster.local:6379"; }, seconds(30)))
      << agent_->log();
  int number = 0;
  const auto poison = [&](const json& spec) {
    kube_.create("/apis/prism.io/v1alpha1/namespaces/tenant/prismbackends",
                 {{"apiVersion", "prism.io/v1alpha1"},
                  {"kind", "PrismBackend"},
                  {"metadata", {{"name", "a-poison-" + std::to_string(++number)}}},
                  {"spec", spec}});
  };
  const json mine{{"secret", {{"name", "mine"}}}};
  poison({{"type", "kafka"}, {"config", {{"auth", "x"}}}, {"discovery", mine}});
  poison({{"type", "kafka"}, {"config", {{"auth", {{"sasl", {1}}}}}}, {"discovery", mine}});
  poison({{"type", std::string(10'000, 't')}, {"discovery", mine}});
  poison({{"type", "redis"},
          {"metadata", {{"long", std::string(20'000, 'x')}}},
          {"capabilities", {std::string(20'000, 'c')}}});
  for (const std::string& name :
       {std::string(".."), std::string("a%b"), std::string("a/b?c"), std::string("UPPER"), std::string(500'000, 'x')}) {
    poison({{"type", "redis"}, {"discovery", {{"secret", {{"name", name}}}, {"service", {{"name", name}}}}}});
    poison({{"type", "redis"}, {"discovery", {{"secret", {{"name", "mine"}, {"namespace", name}}}}}});
  }
  for (int i = 0; i < 100; ++i) {
    poison({{"type", "redis"},
            {"discovery",
             {{"secret", {{"name", "none-" + std::to_string(i)}}},
              {"service", {{"name", "none-" + std::to_string(i)}}}}}});
  }
  ASSERT_NO_FATAL_FAILURE(settle());
  EXPECT_EQ(drifts("cluster", "*a-poison-*").size(), static_cast<std::size_t>(number)) << "each is a drift of its own";
  EXPECT_TRUE(backend_reports("cluster", "faults of what defines its backends"));
  redefine("prod", "orders", 6380, "canary-new");
  EXPECT_TRUE(reports_new_endpoint_and_password("orders")) << agent_->log();
  EXPECT_EQ(agent_->backend("cluster")->at("worker").value("crashes", 0), 0) << agent_->backend("cluster")->dump();
  EXPECT_EQ(all_output().find("canary-"), std::string::npos);
  expect_unharmed();
}

/// Every tenant may label as many objects as it likes. That uses up only the tenant's own share of backends. If the
/// tenant removes many of them at once, only these deletions wait for a decision.
TEST_F(HostileTenant, WhatANamespaceLabelsTakesNoOthersRoomAndHoldsNobodysDeletion) {
  namespaces_ = "tenant, prod";  // listed before the others
  kube_.create_namespace("prod");
  create_map("quiet", "greeting", "hello");
  define("prod", "orders", 6379, "canary-own");
  define("prod", "billing", 6379, "canary-own");
  for (int i = 0; i < 13; ++i) define("tenant", "mine-" + std::to_string(i), 6379, "one");
  ASSERT_NO_FATAL_FAILURE(watch());
  const auto exists = [&](const std::string& name) { return agent_->backend(name).has_value(); };
  ASSERT_TRUE(eventually([&] { return exists("orders") && exists("billing") && exists("mine-12"); }, seconds(30)))
      << agent_->log();
  const json unlabel{{"metadata", {{"labels", {{"prism.io/backend", nullptr}}}}}};
  const auto remove_labels = [&](const std::string& name_space, const std::string& name) {
    for (const char* each : {"/services/", "/secrets/"})
      kube_.patch("/api/v1/namespaces/" + name_space + each + name, unlabel);
  };
  for (int i = 0; i < 12; ++i) remove_labels("tenant", "mine-" + std::to_string(i));
  ASSERT_NO_FATAL_FAILURE(settle());
  const auto deletions_are_held = [&] {
    const auto open = drifts("cluster", "*");
    return std::ranges::any_of(open, [](const auto& d) { return d.value("resource", "") == "scope/discovered"; });
  };
  // Refreshes the cluster again and again until `condition` is true.
  const auto refresh_until = [&](const std::function<bool()>& condition, seconds max_wait) {
    return eventually(
        [&] {
          agent_->cli({"refresh", "cluster", "--full"});
          return condition();
        },
        max_wait);
  };
  ASSERT_TRUE(refresh_until(deletions_are_held, seconds(30)));
  remove_labels("prod", "billing");
  EXPECT_TRUE(refresh_until([&] { return !exists("billing"); }, seconds(30))) << agent_->cli({"backends"}).out;
  EXPECT_TRUE(exists("mine-0")) << "its deletion waits for a decision";

  const json labels{{"prism.io/backend", "true"}, {"prism.io/backend-type", "redis"}};
  for (int i = 0; i < 1'010; ++i) {
    kube_.create(path("configmaps"),
                 {{"metadata", {{"name", "a-fill-" + std::to_string(i)}, {"labels", labels}}}, {"data", {{"a", "b"}}}});
  }
  define("prod", "later", 6379, "canary-own");
  redefine("prod", "orders", 6380, "canary-new");
  EXPECT_TRUE(refresh_until([&] { return exists("later"); }, seconds(60)))
      << agent_->cli({"backends"}).out << agent_->log();
  EXPECT_TRUE(reports_new_endpoint_and_password("orders")) << agent_->log();
  EXPECT_TRUE(backend_reports("cluster", "namespace tenant is passed over"));
  EXPECT_TRUE(exists("mine-12")) << "the tenant keeps the backend that it had";
  EXPECT_THAT(subjects("mine-12"), testing::Not(testing::Contains("deleted")));
  EXPECT_FALSE(exists("a-fill-1009"))
      << "the last one is above the tenant's share; the first ones may have been within it";
  EXPECT_EQ(all_output().find("canary-"), std::string::npos);
  expect_unharmed();
}

}  // namespace
}  // namespace driftd::test
