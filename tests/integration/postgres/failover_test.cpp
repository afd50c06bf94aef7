// SPDX-License-Identifier: Apache-2.0
// A streaming standby and its promotion, on real servers.
#include <thread>
#include <utility>

#include "fixture.hpp"
#include "support/cutting_relay.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class PostgresStandby : public testing::Test {
 protected:
  PostgresStandby() {
    primary_.sql(readme_grants("postgres", "sql"));
    standby_ = std::make_unique<PostgresServer>(PostgresServer::Options{{"hot_standby = on"}, false, &primary_});
    EXPECT_TRUE(eventually([&] { return standby_->value("SELECT status FROM pg_stat_wal_receiver") == "streaming"; }));
  }
  PostgresServer primary_;
  std::unique_ptr<PostgresServer> standby_;
};

TEST_F(PostgresStandby, EveryKindIsReadOnAStandbyWithTheRightsOfItsPrimary) {
  auto p = postgres_probe(standby_->endpoint(), {{"databases", "*"}, {"fingerprints", "*"}});
  const auto seen = p.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK) << seen.diagnostics.at(0).text;
  EXPECT_EQ(seen.complete.size(), 14u);
  const json body = seen.body("instance", "instance");
  EXPECT_EQ(body["role"], "standby");
  EXPECT_EQ(body["timeline"], 1);
  EXPECT_EQ(body["upstream"], primary_.endpoint());
  EXPECT_EQ(p.health().health.role, "standby");
  EXPECT_TRUE(p.refresh(seen.cursor).unchanged);
}

/// The attributes of the instance that could not be read, each with its reason.
std::string unread_of_instance(const Collected& seen) {
  std::string out;
  for (const auto& unread : seen.find("instance", "instance")->unread) out += unread.path + ": " + unread.reason + "\n";
  return out;
}

TEST_F(PostgresStandby, AStreamThatMayNotBeSeenOrIsSilentIsUnknownAndNoOtherUpstream) {
  auto p = postgres_probe(standby_->endpoint());
  EXPECT_EQ(unread_of_instance(p.refresh()), "");
  primary_.sql("REVOKE pg_monitor FROM driftd; GRANT pg_read_all_settings TO driftd");
  const auto denied = refresh_until(p, [](const Collected& c) { return unread_of_instance(c) != ""; });
  EXPECT_THAT(unread_of_instance(denied), HasSubstr("upstream: needs pg_read_all_stats"));
  EXPECT_THAT(unread_of_instance(denied), HasSubstr("timeline: needs pg_read_all_stats"));
  primary_.sql("GRANT pg_monitor TO driftd");
  refresh_until(p, [](const Collected& c) { return unread_of_instance(c).empty(); });
  primary_.stop();
  const auto silent = refresh_until(p, [](const Collected& c) { return unread_of_instance(c) != ""; });
  EXPECT_THAT(unread_of_instance(silent), HasSubstr("upstream: the standby receives no WAL now"));
  EXPECT_FALSE(silent.body("instance", "instance").contains("upstream"));
}

TEST_F(PostgresStandby, PromotionMovesRoleAndTimelineAndKeepsTheIdentity) {
  auto p = postgres_probe(standby_->endpoint());
  const auto before = p.refresh();
  primary_.stop();
  ASSERT_EQ(standby_->value("SELECT pg_promote(true, 60)"), "t");
  const auto after =
      refresh_until(p, [](const Collected& c) { return c.body("instance", "instance")["timeline"] == 2; });
  json primary = after.body("instance", "instance"), standby = before.body("instance", "instance");
  EXPECT_EQ(primary["role"], "primary");
  EXPECT_EQ(primary["upstream"], nullptr);
  for (const char* changed : {"role", "timeline", "upstream"}) {
    primary.erase(changed);
    standby.erase(changed);
  }
  EXPECT_EQ(primary, standby) << "nothing else changes";
  for (const char* kind : {"role", "database", "extension", "schema", "hba"}) {
    for (const auto& record : before.records) {
      if (record.kind != kind) continue;
      EXPECT_EQ(after.body(kind, record.id), json::parse(record.body)) << kind << "/" << record.id;
    }
  }
}

TEST_F(PostgresStandby, TheListOfEndpointsFindsThePrimaryAfterAFailover) {
  auto p = postgres_probe(
      "", {{"endpoints", {primary_.endpoint(), standby_->endpoint()}}, {"target_session_attrs", "primary"}});
  EXPECT_EQ(p.refresh().body("instance", "instance")["endpoint"], primary_.endpoint());
  primary_.stop();
  EXPECT_EQ(p.refresh().status, DRIFTD_UNAVAILABLE) << "the settings ask for a primary, and only a standby is left";
  ASSERT_EQ(standby_->value("SELECT pg_promote(true, 60)"), "t");
  const auto after = refresh_until(p, [](const Collected& c) { return c.status == DRIFTD_OK; });
  EXPECT_EQ(after.body("instance", "instance")["endpoint"], standby_->endpoint());
  EXPECT_EQ(after.body("instance", "instance")["role"], "primary");
}

TEST_F(PostgresStandby, ADdlWatchOnAStandbyIsSilent) {
  auto p = postgres_probe(standby_->endpoint());
  const std::jthread ddl([this](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) primary_.sql("CREATE TABLE news_" + std::to_string(i) + " (id int)");
  });
  const auto silent = p.watch(
      {}, [](const Collected&) { return false; }, std::chrono::milliseconds(300));
  EXPECT_EQ(silent.status, DRIFTD_OK);
  EXPECT_EQ(silent.marks, 0);
}

TEST(PostgresIdentity, AnotherClusterBehindTheSameEndpointSaysSoInItsHealth) {
  PostgresServer one, other({{}, true, nullptr});
  for (auto* server : {&one, &other}) server->sql(readme_grants("postgres", "sql"));
  CuttingRelay relay(one.port());
  auto p = postgres_probe("127.0.0.1:" + std::to_string(relay.port()));
  const std::string first = p.health().health.system_identity;
  EXPECT_EQ(first, one.value("SELECT system_identifier FROM pg_control_system()"));
  relay.point_to(other.port());
  const std::string second = other.value("SELECT system_identifier FROM pg_control_system()");
  EXPECT_NE(first, second);
  EXPECT_TRUE(eventually([&] { return p.health().health.system_identity == second; }));
}

TEST(PostgresIdentity, WhatMovedBehindTheEndpointIsNotReadBeforeHealthHasSeenIt) {
  PostgresServer one, other({{}, true, nullptr});
  for (auto* server : {&one, &other}) server->sql(readme_grants("postgres", "sql"));
  CuttingRelay relay(one.port());
  auto p = postgres_probe("127.0.0.1:" + std::to_string(relay.port()));
  p.health();
  const auto before = p.refresh();
  ASSERT_EQ(before.status, DRIFTD_OK);
  relay.point_to(other.port());
  Collected moved;
  ASSERT_TRUE(eventually([&] { return (moved = p.refresh(before.cursor)).status != DRIFTD_OK || !moved.unchanged; }));
  EXPECT_EQ(moved.status, DRIFTD_UNAVAILABLE);
  EXPECT_TRUE(moved.records.empty());
  EXPECT_EQ(p.read({{"role", "driftd"}}).status, DRIFTD_UNAVAILABLE);
  EXPECT_EQ(p.health().health.system_identity, other.value("SELECT system_identifier FROM pg_control_system()"));
  EXPECT_EQ(p.refresh().status, DRIFTD_OK);
}

}  // namespace
}  // namespace driftd::test
