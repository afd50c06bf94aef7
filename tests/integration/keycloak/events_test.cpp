// SPDX-License-Identifier: Apache-2.0
// The admin events of a real Keycloak as the cursor: what idling costs, and what happens where they cannot be trusted.
#include "world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class KeycloakEvents : public SharedKeycloak {
 protected:
  /// For tests that say nothing of the other kinds: a list of all nine takes a second.
  static inline const json kFewKinds{{"include", {"realm", "client"}}};

  /// Returns the texts of all diagnostics about a kind.
  static std::string texts_of(const Collected& seen, const std::string& kind) {
    std::string out;
    for (const auto& diagnostic : seen.diagnostics) out += diagnostic.kind == kind ? diagnostic.text + "\n" : "";
    return out;
  }
  /// Returns how many of the requests contain the text, from the one with this index on.
  static std::size_t count(const std::vector<std::string>& requests, const std::string& text, std::size_t from = 0) {
    std::size_t out = 0;
    for (std::size_t i = from; i < requests.size(); ++i) out += requests[i].find(text) != std::string::npos ? 1 : 0;
    return out;
  }
  std::vector<std::string> own_requests() const {
    std::vector<std::string> out;
    for (auto& request : server().requests()) {
      if (request.find("/realms/" + realm_) != std::string::npos) out.push_back(std::move(request));
    }
    return out;
  }
  /// Watches until the server has answered this many more requests of the realm.
  Collected idle(ProviderProbe& probe, const std::string& cursor, std::size_t requests) const {
    const std::size_t before = own_requests().size();
    bool enough = false;
    return probe.watch(
        cursor, [&](const Collected&) { return enough; }, std::chrono::seconds(3),
        [&] { enough = enough || own_requests().size() >= before + requests; });
  }
};

TEST_F(KeycloakEvents, IdlingCostsOneRequestAnInterval) {
  const auto opened = probe(kFewKinds);
  const Collected listed = opened->refresh();
  // What changed just before the list is read once more, after which there is nothing to do.
  opened->watch(
      listed.cursor, [](const Collected& seen) { return seen.find("client", "") != nullptr; }, std::chrono::seconds(6));
  const auto before = own_requests();
  idle(*opened, listed.cursor, 100);  // 3 s at 200 ms
  const auto after = own_requests();
  ASSERT_GT(after.size(), before.size() + 3);
  EXPECT_EQ(count(after, "/admin-events?", before.size()), after.size() - before.size()) << "something else was asked";
  EXPECT_LE(after.size() - before.size(), 16u);
  // The refreshes of the agent cost nothing beside the watch, and one request where no watch runs.
  EXPECT_TRUE(opened->refresh(listed.cursor).unchanged);
  EXPECT_EQ(own_requests().size(), after.size());
  const auto another = probe(kFewKinds);
  EXPECT_TRUE(another->refresh(listed.cursor).unchanged);
  EXPECT_EQ(own_requests().size(), after.size() + 1);
}

TEST_F(KeycloakEvents, OnlyWhatAnEventNamesIsReadAgain) {
  const std::string uuid = make_client("app");
  make_client("other");
  const auto opened = probe(kFewKinds);
  const auto before = [&] { return own_requests().size(); };
  std::size_t listed = 0;
  const Collected seen = watch_change(*opened, "realm", realm_, [&] {
    listed = before();
    admin("PUT", "/clients/" + uuid, {{"description", "x"}});
  });
  EXPECT_EQ(seen.find("client", id("other")), nullptr);
  EXPECT_NE(seen.find("client", id("app")), nullptr);
  EXPECT_EQ(count(own_requests(), "/clients/" + uuid, listed), 1u);
  EXPECT_EQ(count(own_requests(), "/clients?", listed), 0u);
  // The time of the event is shown, and it is the server's.
  const json status = json::parse(seen.find("realm", realm_)->status);
  const json newest = get("/admin-events?max=1").at(0);
  EXPECT_EQ(status.at("lastReconcileEventTime"), newest.at("time"));
  EXPECT_THAT(seen.cursor, HasSubstr(newest.at("time").dump()));
  EXPECT_EQ(seen.find("client", id("app"))->metadata.at("user"), newest.at("authDetails").at("userId"));
}

TEST_F(KeycloakEvents, WhatHappensToUsersIsNoReasonToReadAnything) {
  const auto opened = probe(kFewKinds);
  const Collected listed = opened->refresh();
  admin("POST", "/users", {{"username", "someone"}});
  server().set_roles(realm_, readme_roles());  // CLIENT_ROLE_MAPPING, but of a user
  EXPECT_TRUE(probe(kFewKinds)->refresh(listed.cursor).unchanged);
}

TEST_F(KeycloakEvents, EventsThatAreTurnedOffMakeTheRealmBlindAndNothingIsInvented) {
  make_client("app");
  const auto opened = probe();
  const Collected listed = opened->refresh();
  ASSERT_TRUE(listed.diagnostics.empty());
  bool off = false, hinted = false;
  const Collected watched = opened->watch(
      listed.cursor, [&](const Collected& seen) { return hinted = off && seen.cursor.empty(); },
      std::chrono::seconds(20),
      [&] {
        if (!std::exchange(off, true)) server().set_events(realm_, false);
      });
  ASSERT_TRUE(hinted) << "the watch did not ask for a list";
  for (const auto& record : watched.records) EXPECT_FALSE(record.tombstone) << record.id;
  const Collected blind = opened->refresh(listed.cursor);
  EXPECT_THAT(texts_of(blind, "client"),
              AllOf(HasSubstr("blind: realm " + realm_),
                    HasSubstr("kcadm.sh update events/config -r " + realm_ + " -s adminEventsEnabled=true")));
  EXPECT_EQ(blind.complete.at("client"), listed.complete.at("client"));
  EXPECT_EQ(json::parse(blind.find("realm", realm_)->status).at("events"), "blind");
  EXPECT_THAT(opened->health().health.reason, HasSubstr("blind"));
  // Until the next list is due nothing is listed; when it is due, it is.
  EXPECT_TRUE(opened->refresh(blind.cursor).unchanged);
  const auto impatient = probe({{"sweep_interval_s", 1}});
  const Collected first = impatient->refresh();
  make_client("unseen");
  EXPECT_TRUE(eventually([&] { return impatient->refresh(first.cursor).find("client", id("unseen")) != nullptr; }));
}

TEST_F(KeycloakEvents, EventsThatAreTurnedOnAgainAreFollowedAgain) {
  server().set_events(realm_, false);
  const auto opened = probe(kFewKinds);
  const Collected blind = opened->refresh();
  bool on = false, hinted = false;
  opened->watch(
      blind.cursor, [&](const Collected& seen) { return hinted = on && seen.cursor.empty() && seen.marks > 1; },
      std::chrono::seconds(20),
      [&] {
        if (!std::exchange(on, true)) server().set_events(realm_, true);
      });
  ASSERT_TRUE(hinted);
  const Collected seeing = opened->refresh(blind.cursor);
  EXPECT_TRUE(seeing.diagnostics.empty());
  EXPECT_EQ(json::parse(seeing.find("realm", realm_)->status).at("events"), "seen");
}

TEST_F(KeycloakEvents, EventsThatMayHaveExpiredUnreadAreReplacedByAList) {
  const auto keep_for = [&](const char* seconds) {
    json realm = get("");
    realm["attributes"]["adminEventsExpiration"] = seconds;
    admin("PUT", "", realm);
    return probe(kFewKinds)->refresh().cursor;
  };
  EXPECT_TRUE(probe(kFewKinds)->refresh(keep_for("3600")).unchanged);
  // as the agent has it that was down for longer than the events are kept
  const std::string cursor = keep_for("1");
  Collected late;
  EXPECT_TRUE(eventually([&] { return !(late = probe(kFewKinds)->refresh(cursor)).unchanged; }));
  EXPECT_EQ(late.complete.size(), 2u);
}

TEST_F(KeycloakEvents, DeletedEventsAreNoticedAndReplacedByAList) {
  const std::string uuid = make_client("app");
  const auto opened = probe(kFewKinds);
  const Collected listed = opened->refresh();
  bool deleted = false, hinted = false;
  opened->watch(
      listed.cursor, [&](const Collected& seen) { return hinted = deleted && seen.cursor.empty(); },
      std::chrono::seconds(20),
      [&] {
        if (std::exchange(deleted, true)) return;
        admin("PUT", "/clients/" + uuid, {{"description", "unseen"}});
        admin("DELETE", "/admin-events");
      });
  EXPECT_TRUE(hinted);
  EXPECT_EQ(opened->refresh(listed.cursor).body("client", id("app")).value("description", ""), "unseen");
}

TEST_F(KeycloakEvents, AServerThatRestartsLosesNothing) {
  const std::string uuid = make_client("app");
  const auto opened = probe(kFewKinds);
  const Collected listed = opened->refresh();
  server().stop();
  const Collected down = opened->refresh(listed.cursor);
  EXPECT_EQ(down.status, DRIFTD_UNAVAILABLE);
  EXPECT_TRUE(down.complete.empty());
  EXPECT_EQ(opened->health().health.state, DRIFTD_HEALTH_DOWN);
  server().start();
  admin("PUT", "/clients/" + uuid, {{"description", "after"}});
  const Collected after = opened->refresh(listed.cursor);
  EXPECT_EQ(after.body("client", id("app")).value("description", ""), "after");
  EXPECT_EQ(after.complete.at("client"), listed.complete.at("client"));
}

TEST_F(KeycloakEvents, AListGoesOnWhenItsTokenIsRevoked) {
  for (int i = 0; i < 12; ++i) make_client("c" + std::to_string(i));
  const std::string uuid = server().client_uuid(realm_, "driftd");
  const auto server_second = [&] {
    admin("PUT", "/clients/" + uuid, {{"description", "x"}});
    return get("/admin-events?max=1").at(0).at("time").get<std::int64_t>() / 1000;
  };
  const auto opened = probe({{"page", 5}, {"include", {"client"}}});
  int requests = 0;
  std::int64_t made = 0, revoked = 0;
  opened->before_each_request([&] {
    if (++requests == 1) made = server_second();  // its token is not younger than this
    if (requests != 3) return;                    // realm, events, then the first page of clients
    ASSERT_TRUE(eventually([&] { return (revoked = server_second()) > made; }));
    admin("PUT", "/clients/" + uuid, {{"notBefore", revoked}});
  });
  const Collected seen = opened->refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK) << seen.diagnostics.back().text;
  EXPECT_GE(seen.complete.at("client"), 19u);
  EXPECT_NE(server().log().find("/admin/realms/" + realm_ + "/clients?first=0&max=5 HTTP/1.1 401"), std::string::npos)
      << "the token was not refused, so nothing was tried";
}

TEST_F(KeycloakEvents, APageThatMovesWhileItIsReadLosesNoClient) {
  for (const char* name : {"a1", "a2", "a3", "z1", "z2", "z3"}) make_client(name);
  const std::string first = server().client_uuid(realm_, "a1");
  const auto opened = probe({{"page", 4}, {"include", {"client"}}});
  int requests = 0;
  opened->before_each_request([&] {
    // realm, events, then the second page of clients: all behind a1 move forward by one
    if (++requests == 4) admin("DELETE", "/clients/" + first);
  });
  const Collected seen = opened->refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  for (const char* name : {"a2", "a3", "z1", "z2", "z3", "account", "broker", "driftd", "admin-cli"})
    EXPECT_NE(seen.find("client", id(name)), nullptr) << name;
  EXPECT_EQ(seen.complete.at("client"), seen.records.size());
}

}  // namespace
}  // namespace driftd::test
