// SPDX-License-Identifier: Apache-2.0
// The services as a client of another language sees them: Python's grpcio, by reflection alone.
#include <nlohmann/json.hpp>

#include "world.hpp"

namespace driftd::test {
namespace {

TEST_F(GrpcLine, PythonFindsTheServicesByReflectionAndFollowsTheStream) {
  const Output made = run({"sh", std::string(DRIFTD_SOURCE_DIR) + "/tests/support/venv.sh", "grpcio==1.62.3",
                           "grpcio-reflection==1.62.3", "grpcio-health-checking==1.62.3"},
                          {}, std::chrono::seconds(200));
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string python = made.out.substr(0, made.out.find('\n'));
  Agent agent = this->agent();
  start(agent);
  topics_.add("py", 30);
  const Output ran = run({python, std::string(DRIFTD_SOURCE_DIR) + "/tests/e2e/grpc/python_client.py", socket(), "30"});
  ASSERT_EQ(ran.code, 0) << ran.err << agent.log();
  const auto found = nlohmann::json::parse(ran.out);
  EXPECT_EQ(
      found["services"],
      nlohmann::json::parse(R"(["driftd.v1.BackendCredentials","driftd.v1.BackendEvents","driftd.v1.BackendRegistry",)"
                            R"("grpc.health.v1.Health","grpc.reflection.v1alpha.ServerReflection"])"));
  EXPECT_TRUE(found["serving"].get<bool>());
  EXPECT_EQ(found["subscription"], nlohmann::json::parse(R"({"subscriber_id":1,"backend_names":2,"event_types":3,)"
                                                         R"("callback_endpoint":4})"));
  EXPECT_EQ(found["topics"], 30);
}

}  // namespace
}  // namespace driftd::test
