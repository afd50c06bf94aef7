// SPDX-License-Identifier: Apache-2.0
// Credentials of backends in other namespaces, which the operator copies for PrismPatterns where it may.
#include "operator_world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

struct SharedCredentials : OperatorWorld {
  const std::string patterns = "/apis/prism.io/v1alpha1/namespaces/applications/prismpatterns";
  const std::string secret = in("applications", "secrets") + "/app-backends";

  SharedCredentials() {
    kube.create_namespace("applications");
    kube.apply(read_file(DRIFTD_SOURCE_DIR "/packaging/kubernetes/operator-share.yaml"));
    make_service("redis-master", 6379);
    kube.create_secret("infrastructure", "redis", {{"redis-password", "one"}});
    kube.create(backends(), sample());
  }
  OperatorProcess started() const {
    return OperatorProcess(kube, dir, "operator", {"--share-credentials-with", "applications"});
  }
  void make_pattern() const {
    kube.create(patterns, {{"apiVersion", "prism.io/v1alpha1"},
                           {"kind", "PrismPattern"},
                           {"metadata", {{"name", "app"}}},
                           {"spec",
                            {{"pattern", "consumer"},
                             {"image", "app:1"},
                             {"backendBindings", {{"cache", {{"backendRef", "redis-production"}}}}}}}});
  }
  json data() const {
    const auto answer = kube.request("GET", secret);
    return answer.status == 200 ? answer.body.value("data", json::object()) : json("none");
  }
  std::string deployed() const {
    const json status = kube.get(patterns + "/app").value("status", json::object());
    for (const auto& each : status.value("conditions", json::array())) {
      if (each.at("type") == "Deployed") return each.value("reason", "") + ": " + each.value("message", "");
    }
    return {};
  }
};

TEST_F(SharedCredentials, FollowARotationAndGoWithTheSlotThatNeedsThem) {
  const OperatorProcess op = started();
  make_pattern();
  ASSERT_TRUE(eventually([&] { return data() == json{{"cache.password", "b25l"}}; })) << data() << op.log();
  const json owner = kube.get(secret).at("metadata").at("ownerReferences").at(0);
  EXPECT_EQ(owner.at("kind"), "PrismPattern");
  kube.patch(in("infrastructure", "secrets") + "/redis", {{"stringData", {{"redis-password", "two"}}}});
  ASSERT_TRUE(eventually([&] { return data() == json{{"cache.password", "dHdv"}}; })) << data() << op.log();
  kube.patch(secret, {{"data", {{"cache.password", "eA=="}}}});
  ASSERT_TRUE(eventually([&] {
    return data() == json{{"cache.password", "dHdv"}};
  })) << "what somebody changed of it\n"
      << data() << op.log();
  kube.patch(patterns + "/app",
             {{"spec", {{"backendBindings", {{"cache", nullptr}}}, {"config", {{"cache", "in memory"}}}}}});
  EXPECT_TRUE(eventually([&] { return data().empty(); })) << data() << op.log();
  EXPECT_EQ(op.log().find("b25l"), std::string::npos);
}

TEST_F(SharedCredentials, ASecretOfSomebodyElseIsLeftAlone) {
  kube.create_secret("applications", "app-backends", {{"mine", "x"}});
  const OperatorProcess op = started();
  make_pattern();
  ASSERT_TRUE(eventually([&] { return deployed().starts_with("NameTaken"); })) << deployed() << op.log();
  EXPECT_THAT(deployed(), HasSubstr("Secret applications/app-backends exists and belongs to somebody else"));
  EXPECT_EQ(data(), (json{{"mine", "eA=="}}));
}

}  // namespace
}  // namespace driftd::test
