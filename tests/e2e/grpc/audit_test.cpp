// SPDX-License-Identifier: Apache-2.0
// What the audit log says about calls of gRPC: changes, with their rules, and who was turned down.
#include <filesystem>

#include "registry_world.hpp"
#include "support/certificates.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class GrpcAudit : public GrpcRegistry {
 protected:
  static std::vector<json> lines(const Agent& agent) { return agent.rows({"audit", "--limit", "1000"}); }
  static std::vector<json> lines_about(const Agent& agent, const std::string& backend) {
    std::vector<json> out;
    for (const auto& line : lines(agent)) {
      if (line.value("backend", "") == backend || line.value("subject", "").find(backend) != std::string::npos)
        out.push_back(line);
    }
    return out;
  }
  static std::vector<std::string> verbs(const std::vector<json>& lines) {
    std::vector<std::string> out;
    for (const auto& line : lines) {
      const std::string outcome = line.value("outcome", "");
      out.push_back(line.value("verb", "") +
                    (outcome.empty() ? "" : " (" + outcome.substr(0, outcome.find(':')) + ")"));
    }
    return out;
  }
  static bool whole(const Agent& agent) { return agent.ask({"audit", "verify"}).value("whole", false); }
  /// A definition of the test's state file with an option.
  v1::BackendDefinition with_options(const std::string& name, const std::string& options) const {
    v1::BackendDefinition out = terraform(name, topics_.path());
    out.set_options_json(options);
    return out;
  }
};

TEST_F(GrpcAudit, ARegistrationHasItsLineItsRulesAndATime) {
  Agent agent = registrar();
  start(agent);
  ASSERT_TRUE(add(with_options("extra", R"({"policy":{"config":"manual"}})")).ok());
  const std::string etag = get("extra")->etag();
  ASSERT_TRUE(update(with_options("extra", R"({"policy":{"config":"ignore"}})")).ok());
  EXPECT_FALSE(update(terraform("extra", topics_.path()), etag).ok());
  ASSERT_TRUE(remove("extra").ok());
  const auto found = lines_about(agent, "extra");
  EXPECT_THAT(verbs(found), ElementsAre("register backend", "set rules", "change backend", "changed rules",
                                        "change backend (conflict)", "unregister backend", "removed rules"));
  for (const auto& line : found) {
    EXPECT_GT(line.value("at", ""), "2026-") << "a line of 1970 is the first that retention deletes";
    EXPECT_EQ(line.value("actor", ""), found.front().value("actor", ""));
  }
  EXPECT_THAT(found.at(3).at("changes").dump(), AllOf(HasSubstr("ignore"), HasSubstr("manual")));
  EXPECT_TRUE(whole(agent));
}

TEST_F(GrpcAudit, RulesOfARegisteredBackendFollowTheDefaultsAndStayAfterARestart) {
  Agent agent = registrar();
  start(agent);
  ASSERT_TRUE(add(terraform("extra", topics_.path())).ok());
  const auto before = verbs(lines_about(agent, "extra"));
  ASSERT_EQ(agent.stop(), 0);
  start(agent);
  EXPECT_EQ(verbs(lines_about(agent, "extra")), before) << "a restart removes and sets nothing";
  std::string text = read_file(agent.config());
  text.replace(text.find("defaults:\n"), 10, "defaults:\n  policy: { config: ignore }\n");
  dir_.write("next.yaml", text);
  std::filesystem::rename(dir_.file("next.yaml"), agent.config());
  ASSERT_EQ(run({Agent::binary(), "reload", "--config", agent.config()}).code, 0);
  EXPECT_THAT(verbs(lines_about(agent, "extra")), Contains("changed rules").Times(1));
}

TEST_F(GrpcAudit, ASubscriptionHasOneLineForEachChange) {
  Agent agent = registrar();
  start(agent);
  const auto subscribe = [&](const std::string& name) {
    grpc::ClientContext context;
    v1::CreateSubscriptionRequest request;
    v1::SubscriberStatus ignored;
    request.mutable_subscription()->set_subscriber_id("orders");
    request.mutable_subscription()->add_backend_names(name);
    return stub()->CreateSubscription(&context, request, &ignored);
  };
  EXPECT_TRUE(subscribe("a").ok());
  EXPECT_TRUE(subscribe("a").ok()) << "the same again changes nothing";
  EXPECT_FALSE(subscribe("b").ok());
  grpc::ClientContext context;
  v1::DeleteSubscriptionRequest request;
  v1::DeleteSubscriptionResponse answer;
  request.set_subscriber_id("orders");
  EXPECT_TRUE(stub()->DeleteSubscription(&context, request, &answer).ok());
  EXPECT_THAT(verbs(lines_about(agent, "orders")), ElementsAre("subscribe", "subscribe (conflict)", "unsubscribe"));
  EXPECT_TRUE(whole(agent));
}

TEST_F(GrpcAudit, WhoeverIsTurnedDownHasALineAndCannotFillTheLog) {
  Certificates authority;
  authority.issue("agent", "localhost", "DNS:localhost,IP:127.0.0.1");
  const std::string reader = "reader-token-of-this-test-0123456789";
  Agent agent = this->agent(
      "  heartbeat: 1s\n  listen: \"127.0.0.1:" + port() + "\"\n  tls: { cert: " + authority.certificate("agent") +
      ", key: " + authority.key("agent") +
      " }\n  tokens: [{ name: reader, token: \"${file:" + dir_.write("token", reader) + "}\", rights: read }]\n");
  start(agent);
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = read_file(authority.ca());
  const auto over_tls = grpc::CreateChannel("localhost:" + port(), grpc::SslCredentials(options));
  const auto create = [&](const std::string& token) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::CreateSubscriptionRequest request;
    v1::SubscriberStatus ignored;
    request.mutable_subscription()->set_subscriber_id("orders");
    return v1::BackendEvents::NewStub(over_tls)->CreateSubscription(&context, request, &ignored).error_code();
  };
  EXPECT_EQ(create(reader), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(create("a wrong one"), grpc::StatusCode::UNAUTHENTICATED);
  for (int i = 0; i < 60; ++i) EXPECT_EQ(create(""), grpc::StatusCode::UNAUTHENTICATED);
  std::vector<json> refused;
  for (const auto& line : lines(agent)) {
    if (line.value("verb", "") == "refused") refused.push_back(line);
  }
  ASSERT_GE(refused.size(), 2u);
  EXPECT_LE(refused.size(), 6u) << "one of the token, five of the address in a minute";
  EXPECT_EQ(refused[0].value("actor", ""), "token:reader");
  EXPECT_EQ(refused[0].value("subject", ""), "CreateSubscription");
  EXPECT_THAT(refused[0].value("outcome", ""), HasSubstr("needs the right to decide"));
  EXPECT_THAT(refused[1].dump(), AllOf(HasSubstr("unknown"), HasSubstr("127.0.0.1"), HasSubstr("grpc.tokens")));
  EXPECT_TRUE(whole(agent));
}

}  // namespace
}  // namespace driftd::test
