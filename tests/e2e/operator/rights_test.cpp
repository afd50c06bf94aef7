// SPDX-License-Identifier: Apache-2.0
// Each right of the shipped roles is taken away in turn: the operator names it.
#include <functional>

#include "helm_world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

/// A right of a shipped role, and what makes the operator need it.
struct Right {
  std::string role, resource, verb;
  std::string named;                     ///< what the log must say
  std::function<void()> before = [] {};  ///< while all rights are there and no operator runs
  bool elects = false;
};

struct OperatorRights : HelmWorld {
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/";
  const std::string all = rbac + "clusterroles/driftd-operator",
                    here = rbac + "namespaces/driftd/roles/driftd-operator";
  const std::string lease = "/apis/coordination.k8s.io/v1/namespaces/driftd/leases/driftd-operator";
  const std::string needs = "the operator needs the right: ";
  int operators = 0;

  /// The rights of the role as `verb resource`.
  std::vector<std::string> granted(const std::string& role) const {
    std::vector<std::string> out;
    const json rules = kube.get(role).at("rules");
    for (const auto& rule : rules) {
      for (const auto& resource : rule.at("resources")) {
        for (const auto& verb : rule.at("verbs")) {
          out.push_back(verb.get<std::string>() + " " + resource.get<std::string>());
        }
      }
    }
    return out;
  }
  static json without(json rules, const Right& right) {
    json out = json::array();
    for (json& rule : rules) {
      json rest = json::array(), others = json::array();
      for (const auto& resource : rule.at("resources")) {
        if (resource != right.resource) others.push_back(resource);
      }
      const bool has = others.size() < rule.at("resources").size();
      if (!has || !others.empty()) {
        json same = rule;
        if (has) same["resources"] = others;
        out.push_back(same);
      }
      if (!has) continue;
      for (const auto& verb : rule.at("verbs")) {
        if (verb != right.verb) rest.push_back(verb);
      }
      if (rest.empty()) continue;
      rule["resources"] = {right.resource};
      rule["verbs"] = rest;
      out.push_back(rule);
    }
    return out;
  }
  OperatorProcess started(bool elects) {
    std::vector<std::string> options = {"--scheduler-interval", "1s"};
    if (!elects) options.emplace_back("--no-leader-elect");
    return OperatorProcess(kube, dir, "operator-" + std::to_string(++operators), options);
  }
  void is_named(const Right& right) {
    right.before();
    const json rules = kube.get(right.role).at("rules");
    kube.patch(right.role, {{"rules", without(rules, right)}});
    {
      const OperatorProcess op = started(right.elects);
      EXPECT_TRUE(eventually([&] { return op.logged(right.named); })) << right.named << "\n" << op.log();
    }
    kube.patch(right.role, {{"rules", rules}});
  }
  void forget(const std::string& path) const {
    if (kube.request("GET", path).status == 200) kube.remove(path);
  }
  void make_object() const {
    forget(backends() + "/redis-production");
    kube.create(backends(), sample());
  }
  /// A PrismPattern whose Deployment is still to be made.
  void make_pattern() const {
    const std::string space = "/namespaces/infrastructure/";
    forget("/apis/apps/v1" + space + "deployments/app");
    forget("/apis/prism.io/v1alpha1" + space + "prismpatterns/app");
    make_object();
    kube.create("/apis/prism.io/v1alpha1" + space + "prismpatterns",
                {{"apiVersion", "prism.io/v1alpha1"},
                 {"kind", "PrismPattern"},
                 {"metadata", {{"name", "app"}}},
                 {"spec",
                  {{"pattern", "consumer"},
                   {"image", "app:1"},
                   {"backendBindings", {{"cache", {{"backendRef", "redis-production"}}}}}}}});
  }
  /// A release that went while no operator ran, so that its object is still there.
  void let_release_go() {
    {
      const OperatorProcess op = started(false);
      ASSERT_TRUE(comes("cache-infrastructure", "Discovered")) << op.log();
    }
    uninstall("cache");
  }
  std::vector<Right> rights() {
    const std::string objects = "prismbackends.prism.io", status = objects + "/status";
    std::vector<Right> out;
    for (const char* resource : {"services", "secrets", "configmaps"}) {
      out.push_back({all, resource, "watch", needs + "watch " + resource});
    }
    out.push_back({all, "prismbackends", "watch", needs + "watch " + objects});
    out.push_back({all, "prismbackends/status", "patch", needs + "patch " + status, [this] { make_object(); }});
    out.push_back({all, "prismbackends", "create", "cannot create resource", [this] { install("cache", redis()); }});
    out.push_back({all, "prismbackends", "patch", needs + "patch " + objects, [] {}});
    out.push_back({all, "prismbackends", "delete", needs + "delete " + objects, [this] { let_release_go(); }});
    out.push_back({here, "leases", "create", needs + "create leases", [this] { forget(lease); }, true});
    out.push_back({here, "leases", "get", needs + "get leases", [] {}, true});
    out.push_back({here, "leases", "update", needs + "update leases",
                   [this] {
                     const OperatorProcess op = started(true);
                     ASSERT_TRUE(eventually([&] { return kube.request("GET", lease).status == 200; })) << op.log();
                   },
                   true});
    out.push_back({all, "events", "create", needs + "create events.events.k8s.io", [this] { make_object(); }});
    for (const char* resource : {"prismpatterns", "deployments"}) {
      const std::string group = resource == std::string("deployments") ? ".apps" : ".prism.io";
      out.push_back({all, resource, "watch", needs + "watch " + resource + group});
    }
    const auto pattern = [this] { make_pattern(); };
    out.push_back({all, "prismpatterns/status", "patch", needs + "patch prismpatterns.prism.io/status", pattern});
    out.push_back({all, "deployments", "get", needs + "get deployments.apps", pattern});
    out.push_back({all, "deployments", "create", "cannot create resource", pattern});
    out.push_back({all, "deployments", "patch", needs + "patch deployments.apps", pattern});
    return out;
  }
};

TEST_F(OperatorRights, EachThatIsMissingIsNamedInTheLog) {
  make_service("redis-master", 6379);
  kube.create_secret("infrastructure", "redis", {{"redis-password", "x"}});
  std::vector<std::string> tried;
  for (const auto& right : rights()) {
    SCOPED_TRACE(right.role + ": " + right.verb + " " + right.resource);
    is_named(right);
    tried.push_back(right.role + " " + right.verb + " " + right.resource);
  }
  // `list` is for servers that cannot begin a watch with a list (before 1.34), and the test below.
  for (const char* resource : {"prismbackends", "services", "secrets", "configmaps", "prismpatterns", "deployments"}) {
    tried.push_back(all + " list " + resource);
  }
  std::vector<std::string> shipped;
  for (const auto& role : {all, here}) {
    for (const auto& right : granted(role)) shipped.push_back(role + " " + right);
  }
  EXPECT_THAT(tried, ::testing::UnorderedElementsAreArray(shipped)) << "a right without a line above";
}

TEST_F(OperatorRights, WithoutListAWatchThatBeginsWithAListWillDo) {
  make_service("redis-master", 6379);
  kube.create_secret("infrastructure", "redis", {{"redis-password", "x"}});
  kube.create(backends(), sample());
  json rules = kube.get(all).at("rules");
  for (const char* resource : {"prismbackends", "services", "secrets", "configmaps", "prismpatterns", "deployments"}) {
    rules = without(rules, {all, resource, "list", {}});
  }
  kube.patch(all, {{"rules", rules}});
  const OperatorProcess op = started(false);
  EXPECT_TRUE(comes("redis-production", "Discovered")) << op.log();
}

}  // namespace
}  // namespace driftd::test
