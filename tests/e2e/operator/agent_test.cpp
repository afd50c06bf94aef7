// SPDX-License-Identifier: Apache-2.0
// The operator beside a real agent, which discovers the PrismBackends itself.
#include "operator_world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct OperatorAgent : OperatorWorld {
  std::string socket() const { return dir.file("grpc.sock"); }
  Agent agent() const {
    return Agent(dir, "grpc: { socket: \"" + socket() +
                          "\" }\ndefaults: { interval: 30s }\nbackends:\n  - name: cluster\n" +
                          "    provider: k8s\n    settings: { server: \"" + kube.server() + "\", tls: { ca_file: \"" +
                          kube.ca_file() + "\" }, token_file: \"" + kube.file("token") +
                          "\", namespaces: [infrastructure], include: [prism_backend, service, secret] }\n");
  }
  OperatorProcess started() const { return OperatorProcess(kube, dir, "operator", {"--agent", "unix:" + socket()}); }
};

TEST_F(OperatorAgent, ABackendIsDiscoveredWhenTheAgentHasRegisteredIt) {
  Agent agent = this->agent();
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"cluster"}); }, seconds(60))) << agent.log();
  const OperatorProcess op = started();
  make_service("redis-master", 6379);
  kube.create_secret("infrastructure", "redis", {{"redis-password", "x"}});
  const auto made = std::chrono::steady_clock::now();
  kube.create(backends(), sample());
  ASSERT_TRUE(comes("redis-production", "Discovered", seconds(30)))
      << status("redis-production").dump(2) << op.log() << agent.log();
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - made).count();
  std::printf("a PrismBackend was Discovered, the agent's registry included, after %.2f s\n", took);
  EXPECT_LT(took, 10.0);
  EXPECT_EQ(condition("redis-production", "Synced"), "True Registered");
  const auto registered = agent.backend("redis-production");
  ASSERT_TRUE(registered.has_value());
  EXPECT_EQ(registered->at("endpoint"), status("redis-production").at("resolvedEndpoint"));

  // Another port: the status says the new endpoint at once, and is Discovered when the agent has it too.
  kube.patch(backends() + "/redis-production", {{"spec", {{"discovery", {{"service", {{"port", 6380}}}}}}}});
  const auto moved = [&] {
    return phase("redis-production") == "Discovered" &&
           status("redis-production").at("resolvedEndpoint") == "redis-master.infrastructure.svc.cluster.local:6380";
  };
  ASSERT_TRUE(eventually(moved, seconds(30))) << status("redis-production").dump(2) << op.log() << agent.log();
  EXPECT_TRUE(eventually([&] {
    return agent.backend("redis-production")->at("endpoint") == "redis-master.infrastructure.svc.cluster.local:6380";
  }));
}

TEST_F(OperatorAgent, AnAgentThatIsAwayIsSaidAfterAWhileAndForgivenAtOnce) {
  make_service("redis-master", 6379);
  kube.create_secret("infrastructure", "redis", {{"redis-password", "x"}});
  kube.create(backends(), sample());
  const OperatorProcess op = started();
  ASSERT_TRUE(comes("redis-production", "Error", seconds(60))) << op.log();
  EXPECT_THAT(message("redis-production"), StartsWith("Admin sync failed: "));
  EXPECT_EQ(condition("redis-production", "Synced"), "False AgentUnreachable");
  EXPECT_EQ(condition("redis-production", "SecretFound"), "True Found");
  EXPECT_EQ(op.metric("driftd_operator_agent_connected"), 0);
  Agent agent = this->agent();
  agent.start();
  ASSERT_TRUE(comes("redis-production", "Discovered", seconds(60))) << status("redis-production").dump(2) << op.log();
  EXPECT_EQ(op.metric("driftd_operator_agent_connected"), 1);
}

}  // namespace
}  // namespace driftd::test
