// SPDX-License-Identifier: Apache-2.0
// Two operators: one acts.
#include <csignal>

#include "operator_world.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct OperatorLeader : OperatorWorld {
  std::string holder() const {
    const auto answer = kube.request("GET", "/apis/coordination.k8s.io/v1/namespaces/driftd/leases/driftd-operator");
    return answer.status == 200 ? answer.body.at("spec").value("holderIdentity", "") : std::string();
  }
  bool is_held_by(const std::string& name, std::chrono::milliseconds max_wait = seconds(20)) const {
    return eventually([&] { return holder().starts_with(name + "_"); }, max_wait);
  }
};

TEST_F(OperatorLeader, AKilledLeaderIsReplacedWithinItsLease) {
  OperatorProcess first(kube, dir, "first");
  ASSERT_TRUE(is_held_by("first")) << first.log();
  OperatorProcess second(kube, dir, "second");
  ASSERT_TRUE(eventually([&] { return second.logged("waits for the lease driftd/driftd-operator"); }));
  EXPECT_EQ(second.probe("/readyz"), 200);
  EXPECT_EQ(second.metric("driftd_operator_leader"), 0);
  kube.create(backends(), sample());
  ASSERT_TRUE(comes("redis-production", "Error"));
  const auto killed = std::chrono::steady_clock::now();
  first.kill();
  ASSERT_TRUE(is_held_by("second")) << second.log();
  // The lease lasts 3 s, and is looked at every 500 ms.
  EXPECT_LT(std::chrono::steady_clock::now() - killed, seconds(5));
  const std::string version = kube.get(backends() + "/redis-production").at("metadata").at("resourceVersion");
  ASSERT_TRUE(
      eventually([&] { return second.probe("/readyz") == 200 && second.metric("driftd_operator_leader") == 1; }));
  make_service("redis-master", 6379);
  ASSERT_TRUE(eventually([&] { return message("redis-production").starts_with("Secret not found"); })) << second.log();
  EXPECT_NE(kube.get(backends() + "/redis-production").at("metadata").at("resourceVersion"), version);
}

TEST_F(OperatorLeader, OneThatEndsInOrderGivesTheLeaseUpAtOnce) {
  OperatorProcess first(kube, dir, "first", {"--lease-duration", "60s", "--renew-deadline", "40s"});
  ASSERT_TRUE(is_held_by("first"));
  OperatorProcess second(kube, dir, "second");
  ASSERT_TRUE(eventually([&] { return second.logged("waits for the lease"); }));
  EXPECT_EQ(first.stop(), 0) << first.log();
  EXPECT_TRUE(is_held_by("second", seconds(5))) << "long before the 60 s are over; " << second.log();
}

TEST_F(OperatorLeader, OneThatWasPausedEndsInsteadOfWritingBesideItsSuccessor) {
  OperatorProcess first(kube, dir, "first");
  ASSERT_TRUE(is_held_by("first"));
  OperatorProcess second(kube, dir, "second");
  first.signal(SIGSTOP);
  ASSERT_TRUE(is_held_by("second")) << second.log();
  first.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return !first.running(); })) << first.log();
  EXPECT_THAT(first.log(), HasSubstr("lost the lease driftd/driftd-operator"));
  EXPECT_TRUE(is_held_by("second"));
}

TEST_F(OperatorLeader, WithoutTheRightToTheLeaseItSaysWhichRight) {
  kube.patch("/apis/rbac.authorization.k8s.io/v1/namespaces/driftd/roles/driftd-operator",
             {{"rules", nlohmann::json::array()}});
  const OperatorProcess op(kube, dir, "operator");
  EXPECT_TRUE(eventually([&] { return op.logged("the operator needs the right: get leases"); })) << op.log();
}

}  // namespace
}  // namespace driftd::test
