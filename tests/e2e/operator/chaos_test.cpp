// SPDX-License-Identifier: Apache-2.0
// The operator while the API server refuses, cuts and withdraws, and while everything is made and deleted at once.
#include <functional>
#include <future>

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

}  // namespace
}  // namespace driftd::test
