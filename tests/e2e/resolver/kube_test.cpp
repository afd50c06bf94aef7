// SPDX-License-Identifier: Apache-2.0
// The annotation of the discovery RFC and a real API server: the resolver reads Secrets with its own service account.
#include <gmock/gmock.h>
#include <fstream>

#include "support/agent.hpp"
#include "support/kube.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

/// Literally that of the RFC.
constexpr const char* kAnnotation =
    "message_source:\n  service: kafka.infrastructure.svc.cluster.local:9092\n  secret: kafka-credentials\n"
    "state_store:\n  service: redis-master.infrastructure.svc.cluster.local:6379\n  secret: redis\n";

class ResolverOfSecrets : public testing::Test {
 protected:
  ResolverOfSecrets() {
    kube_.create_namespace("applications");
    kube_.create_secret("applications", "redis", {{"redis-password", "canary-0"}});
    const json rule = {{"apiGroups", {""}},
                       {"resources", {"secrets"}},
                       {"resourceNames", {"redis", "kafka-credentials"}},
                       {"verbs", {"get"}}};
    dir_.write("token", kube_.account("applications", "order-consumer", json::array({rule})));
  }
  std::vector<std::string> command(const std::vector<std::string>& more) const {
    std::vector<std::string> out = {Agent::build("bin/driftd-resolver"),
                                    "--output",
                                    dir_.file("backends.json"),
                                    "--namespace",
                                    "applications",
                                    "--kube-server",
                                    kube_.server(),
                                    "--kube-ca",
                                    kube_.ca_file(),
                                    "--kube-token-file",
                                    dir_.file("token")};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  json file() const {
    std::ifstream in(dir_.file("backends.json"));
    return json::parse(in, nullptr, false);
  }
  bool has_password(const std::string& password) const {
    const json all = file();
    return all.is_object() && all.value(json::json_pointer("/state_store/config/password"), "") == password;
  }

  TempDir dir_;
  KubeServer kube_;
};

TEST_F(ResolverOfSecrets, TheAnnotationOfTheRfcBecomesItsFileAndFollowsTheSecret) {
  const std::map<std::string, std::string> env = {{"BACKEND_BINDINGS", kAnnotation}};
  const auto missing = run(command({"--timeout", "1s"}), env);
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err,
              HasSubstr("failed to bind slot message_source: the Secret kafka-credentials in the namespace "
                        "applications does not exist or has none of the keys password, kafka-password"));
  kube_.create_secret("applications", "kafka-credentials", {{"username", "orders"}, {"password", "canary-k"}});
  const auto done = run(command({}), env);
  ASSERT_EQ(done.code, 0) << done.err;
  const json all = file();
  EXPECT_EQ(all["message_source"]["type"], "kafka");
  EXPECT_EQ(all["message_source"]["config"]["brokers"], json::array({"kafka.infrastructure.svc.cluster.local:9092"}));
  EXPECT_EQ(all["message_source"]["config"]["username"], "orders");
  EXPECT_EQ(all["state_store"]["type"], "redis");
  EXPECT_EQ(
      all["state_store"]["config"],
      json({{"host", "redis-master.infrastructure.svc.cluster.local"}, {"port", 6379}, {"password", "canary-0"}}));

  const std::string log = dir_.file("resolver.log");
  Child sidecar(command({"--follow", "--interval", "300ms"}), {.log = log, .env = env});
  kube_.patch("/api/v1/namespaces/applications/secrets/redis", {{"stringData", {{"redis-password", "canary-1"}}}});
  ASSERT_TRUE(eventually([&] { return has_password("canary-1"); }, seconds(30))) << read_file(log);
  kube_.kill();
  ASSERT_TRUE(eventually([&] { return read_file(log).find("the file keeps what is known of it") != std::string::npos; },
                         seconds(30)));
  EXPECT_TRUE(has_password("canary-1"));
  kube_.start();
  ASSERT_TRUE(eventually([&] { return read_file(log).find("slot state_store is good again") != std::string::npos; },
                         seconds(60)))
      << read_file(log);
  sidecar.signal(SIGTERM);
  EXPECT_EQ(sidecar.wait(seconds(10)), 0);
  EXPECT_THAT(missing.err + done.err + read_file(log), Not(HasSubstr("canary")));
}

TEST_F(ResolverOfSecrets, AMissingRightIsNamed) {
  kube_.create_secret("applications", "other", {{"password", "canary"}});
  const auto denied = run(command({"--timeout", "0s", "--bindings", "a: { service: \"h:6379\", secret: other }"}));
  EXPECT_EQ(denied.code, 1);
  EXPECT_THAT(denied.err,
              HasSubstr("the service account needs `get` on the Secret other in the namespace applications"));
  EXPECT_THAT(denied.err, Not(HasSubstr("canary")));
}

}  // namespace
}  // namespace driftd::test
