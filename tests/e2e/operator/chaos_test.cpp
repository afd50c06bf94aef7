// SPDX-License-Identifier: Apache-2.0
// The operator while the API server refuses, cuts and withdraws, and while everything is made and deleted at once.
#include <algorithm>
#include <future>
#include <iostream>

#include "operator_world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;

struct OperatorChaos : OperatorWorld {
  static std::string name(int number) { return "redis-" + std::to_string(number); }
  /// Runs `act` for the numbers below `count`, by four threads.
  static void each(int count, const std::function<void(int)>& act) {
    std::vector<std::future<void>> hands;
    for (int t = 0; t < 4; ++t) {
      hands.push_back(std::async(std::launch::async, [&act, count, t] {
        for (int i = t; i < count; i += 4) act(i);
      }));
    }
    for (auto& hand : hands) hand.get();
  }
  /// What the Service and the Secret of the sample need to be found.
  void make_redis() const {
    make_service("redis-master", 6379);
    kube.create_secret("infrastructure", "redis", {{"redis-password", "x"}});
  }
  int discovered() const {
    int out = 0;
    const json list = kube.get(backends());
    for (const auto& object : list.at("items")) {
      out += object.contains("status") && object.at("status").value("phase", "") == "Discovered" ? 1 : 0;
    }
    return out;
  }
};

double of_backends(const OperatorProcess& op, const std::string& metric) {
  return op.metric("driftd_operator_" + metric + "{kind=\"PrismBackend\"}");
}

TEST_F(OperatorChaos, FiveHundredObjectsMadeAndDeletedAtOnceLeaveNothing) {
  const OperatorProcess op(kube, dir, "operator");
  make_redis();
  ASSERT_TRUE(eventually([&] { return op.probe("/readyz") == 200 && op.metric("driftd_operator_leader") == 1; }));
  constexpr int kMany = 500;
  each(kMany, [&](int i) {
    kube.create(backends(), sample(name(i)));
    if (i % 2 == 0) kube.remove(backends() + "/" + name(i));  // before the operator may have seen it
  });
  ASSERT_TRUE(eventually([&] { return discovered() == kMany / 2; }, seconds(60))) << discovered() << op.log();
  each(kMany, [&](int i) {
    if (i % 2 == 1) kube.remove(backends() + "/" + name(i));
  });
  const auto at_rest = [&] {
    return of_backends(op, "watcher_cached_resources") == 0 &&
           of_backends(op, "controller_pending_reconciliations") == 0 && of_backends(op, "controller_running") == 0;
  };
  EXPECT_TRUE(eventually(at_rest, seconds(60))) << op.log();
  EXPECT_EQ(of_backends(op, "controller_failed_keys"), 0);
  EXPECT_TRUE(kube.get(backends()).at("items").empty()) << "no status write brought an object back";
  kube.create(backends(), sample("redis-after"));
  EXPECT_TRUE(comes("redis-after", "Discovered")) << op.log();
}

TEST_F(OperatorChaos, NothingIsLostWhileTheWatchesAreCutAgainAndAgain) {
  Relay relay(kube.port());
  const OperatorProcess op(kube, dir, "operator",
                           {"--kubeconfig", operator_kubeconfig(kube, dir, relay.port()), "--lease-duration", "60s",
                            "--renew-deadline", "50s"});
  make_redis();
  ASSERT_TRUE(eventually([&] { return op.probe("/readyz") == 200 && op.metric("driftd_operator_leader") == 1; }));
  const int before = relay.connections();
  for (int i = 0; i < 60; ++i) {
    kube.create(backends(), sample(name(i)));
    if (i % 3 == 0) relay.cut_now();
    if (i % 10 == 9) kube.remove(backends() + "/" + name(i - 5));
  }
  EXPECT_GE(relay.connections(), before);
  ASSERT_TRUE(eventually([&] { return discovered() == 54; }, seconds(60))) << discovered() << op.log();
  EXPECT_TRUE(eventually([&] { return of_backends(op, "watcher_cached_resources") == 54; }, seconds(60))) << op.log();
  EXPECT_TRUE(eventually([&] { return of_backends(op, "controller_pending_reconciliations") == 0; })) << op.log();
  EXPECT_GT(relay.connections(), before + 5) << "the cuts were felt";
}

TEST_F(OperatorChaos, EverySecondWriteMayBeRefusedWithAConflict) {
  const int port = free_port();
  const std::string writes = dir.write("writes.log", "");
  const Child proxy(
      {"python3", DRIFTD_SOURCE_DIR "/tests/support/kube_conflicts.py", std::to_string(port),
       std::to_string(kube.port()), kube.file("server.pem"), kube.file("server.key"), kube.ca_file(), writes},
      {dir.file("proxy.log"), {}, {}});
  OperatorProcess op(kube, dir, "operator", {"--kubeconfig", operator_kubeconfig(kube, dir, port)});
  make_redis();
  constexpr int kMany = 40;
  each(kMany, [&](int i) { kube.create(backends(), sample(name(i))); });
  ASSERT_TRUE(eventually([&] { return discovered() == kMany; }, seconds(60)))
      << discovered() << op.log() << read_file(dir.file("proxy.log"));
  EXPECT_TRUE(eventually([&] { return of_backends(op, "controller_pending_reconciliations") == 0; })) << op.log();
  EXPECT_EQ(of_backends(op, "controller_failed_keys"), 0);
  const std::string log = read_file(writes);
  for (int i = 0; i < kMany; ++i) {
    EXPECT_THAT(log, HasSubstr(backends() + "/" + name(i) + "/status refused")) << "it was refused at least once";
  }
}

/// A right of the shipped roles, and what makes the operator need it.
struct Right {
  std::string role, resource, verb;
  std::function<void()> need = [] {};
  std::string named;  ///< what the log must say; empty: `the operator needs the right: VERB RESOURCE`
  bool elects = false;
};

struct OperatorRights : OperatorChaos {
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/";
  const std::string all = rbac + "clusterroles/driftd-operator",
                    here = rbac + "namespaces/driftd/roles/driftd-operator";

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
  void is_named(const Right& right, int number) {
    const json rules = kube.get(right.role).at("rules");
    right.need();
    kube.patch(right.role, {{"rules", without(rules, right)}});
    {
      std::vector<std::string> options = {"--scheduler-interval", "1s"};
      if (!right.elects) options.emplace_back("--no-leader-elect");
      OperatorProcess op(kube, dir, "operator-" + std::to_string(number), options);
      const std::string text =
          right.named.empty() ? "the operator needs the right: " + right.verb + " " + right.resource : right.named;
      EXPECT_TRUE(eventually([&] { return op.logged(text); })) << text << "\n" << op.log();
    }
    kube.patch(right.role, {{"rules", rules}});
  }
};

TEST_F(OperatorRights, EachRightThatIsMissingIsNamedInTheLog) {
  make_redis();
  const auto object = [this] {
    if (kube.request("GET", backends() + "/redis-production").status == 200) {
      kube.remove(backends() + "/redis-production");
    }
    kube.create(backends(), sample());
  };
  std::vector<Right> rights;
  for (const char* resource : {"prismbackends", "services", "secrets", "configmaps"}) {
    for (const char* verb : {"list", "watch"}) rights.push_back({all, resource, verb});
  }
  rights.push_back({all, "prismbackends/status", "patch", object});
  rights.push_back({here, "leases", "create", {}, {}, true});
  int number = 0;
  for (const auto& right : rights) {
    SCOPED_TRACE(right.role + ": " + right.verb + " " + right.resource);
    is_named(right, ++number);
  }
}

}  // namespace
}  // namespace driftd::test
