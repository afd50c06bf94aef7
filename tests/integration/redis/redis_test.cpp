// SPDX-License-Identifier: Apache-2.0
// The provider against a real server: every kind is listed, a change is seen, a failure says what is wrong.
#include "support/redis.hpp"

#include <gmock/gmock.h>

#include "support/provider_probe.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;

/// A server and a provider that has only the README's rights.
class Redis : public testing::Test {
 protected:
  Redis() { server_.grant_readme("pw-canary"); }
  ProviderProbe probe(const std::string& password = "pw-canary") const {
    return ProviderProbe("providers/redis.so",
                         {{"address", server_.address()}, {"username", "driftd"}, {"password", "token-1"}},
                         {{"token-1", password}});
  }
  RedisServer server_;
};

TEST_F(Redis, ReadmeRightsSufficeForEveryKind) {
  auto p = probe();
  const auto seen = p.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  EXPECT_THAT(seen.diagnostics, testing::IsEmpty());
  EXPECT_EQ(seen.complete.at("server"), 1u);
  EXPECT_EQ(seen.complete.at("acl_user"), 2u);
  EXPECT_EQ(seen.complete.at("replication"), 1u);
  EXPECT_TRUE(seen.find("server", "server")->unread.empty());
  EXPECT_FALSE(seen.cursor.empty());
  expect_named_by_schema(seen);
}

TEST_F(Redis, TwoListingsAreTheSameBytes) {
  auto p = probe();
  const auto first = p.refresh(), second = p.refresh();
  ASSERT_EQ(first.records.size(), second.records.size());
  for (std::size_t i = 0; i < first.records.size(); ++i) EXPECT_EQ(first.records[i].body, second.records[i].body);
}

TEST_F(Redis, NothingIsReadWhileTheCountersStand) {
  auto p = probe();
  const auto first = p.refresh();
  EXPECT_TRUE(p.refresh(first.cursor).unchanged);
  server_.command({"SET", "key", "value"});
  EXPECT_TRUE(p.refresh(first.cursor).unchanged);
}

TEST_F(Redis, ConfigSetFromOutsideIsSeen) {
  auto p = probe();
  const auto first = p.refresh();
  ASSERT_EQ(server_.command({"CONFIG", "SET", "maxmemory", "64mb"}), "OK");
  const auto second = p.refresh(first.cursor);
  EXPECT_FALSE(second.unchanged);
  EXPECT_EQ(second.body("server", "server")["config"]["maxmemory"], "67108864");
}

TEST_F(Redis, RotatedAclPasswordIsSeenAndARemovedUserIsNotFound) {
  server_.command({"ACL", "SETUSER", "app", "on", ">one", "~app:*", "+get"});
  auto p = probe();
  const auto first = p.refresh();
  server_.command({"ACL", "SETUSER", "app", "resetpass", ">two"});
  const auto second = p.refresh(first.cursor);
  EXPECT_NE(first.body("acl_user", "app")["passwords"], second.body("acl_user", "app")["passwords"]);
  server_.command({"ACL", "DELUSER", "app"});
  const auto third = p.read({{"acl_user", "app"}, {"server", "server"}});
  EXPECT_EQ(third.status, DRIFTD_OK);
  EXPECT_EQ(third.find("acl_user", "app"), nullptr);
  EXPECT_NE(third.find("server", "server"), nullptr);
  ASSERT_NE(third.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  EXPECT_EQ(third.diagnostic(DRIFTD_NOT_FOUND)->id, "app");
}

TEST_F(Redis, RightRevokedInTheMiddleIsNamedAndThatKindIsNotComplete) {
  auto p = probe();
  const auto first = p.refresh();
  server_.command({"ACL", "SETUSER", "driftd", "-config|get"});
  const auto second = p.refresh(first.cursor);
  EXPECT_EQ(second.status, DRIFTD_OK);
  EXPECT_EQ(second.complete.count("server"), 0u);
  EXPECT_EQ(second.complete.count("acl_user"), 1u);
  ASSERT_NE(second.diagnostic(DRIFTD_DENIED), nullptr);
  EXPECT_EQ(second.diagnostic(DRIFTD_DENIED)->right, "+config|get");
  EXPECT_EQ(second.diagnostic(DRIFTD_DENIED)->kind, "server");
  EXPECT_TRUE(second.cursor.empty()) << "a cursor would vouch for what was not read";
}

TEST_F(Redis, WrongPasswordIsUnauthenticatedAndNotRepeated) {
  auto p = probe("wrong-canary");
  const auto seen = p.refresh();
  EXPECT_EQ(seen.status, DRIFTD_UNAUTHENTICATED);
  ASSERT_EQ(seen.diagnostics.size(), 1u);
  EXPECT_THAT(seen.diagnostics[0].text, HasSubstr("driftd"));
  EXPECT_THAT(seen.diagnostics[0].text, testing::Not(HasSubstr("canary")));
}

TEST_F(Redis, StoppedServerIsUnavailableThenComesBack) {
  auto p = probe();
  const auto first = p.refresh();
  server_.stop();
  EXPECT_EQ(p.refresh(first.cursor).status, DRIFTD_UNAVAILABLE);
  EXPECT_EQ(p.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
  server_.start();
  server_.grant_readme("pw-canary");
  EXPECT_EQ(p.refresh(first.cursor).status, DRIFTD_OK);
}

TEST_F(Redis, ReplicaShowsItsPrimaryAsEndpoint) {
  RedisServer replica({"--replicaof", "127.0.0.1", std::to_string(server_.port())});
  replica.grant_readme("pw-canary");
  ProviderProbe p("providers/redis.so", {{"address", replica.address()}, {"username", "driftd"}, {"password", "t"}},
                  {{"t", "pw-canary"}});
  const auto body = p.refresh().body("replication", "replication");
  EXPECT_EQ(body["role"], "replica");
  EXPECT_EQ(body["primary"], server_.address());
}

TEST_F(Redis, ConfigCredentialsAreDeclaredSensitive) {
  auto p = probe();
  const auto schema = nlohmann::json::parse(p.schema("server"));
  for (const char* key : {"requirepass", "masterauth", "tls-key-file-pass"}) {
    const auto rule = schema["attributes"]["config." + std::string(key)];
    EXPECT_EQ(rule["sensitive"], true) << key;
    EXPECT_EQ(rule["class"], "credential") << key;
  }
}

}  // namespace
}  // namespace driftd::test
