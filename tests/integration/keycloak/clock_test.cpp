// SPDX-License-Identifier: Apache-2.0
// A Keycloak whose clock is five minutes ahead of the agent's machine, or behind it. The clock of this process is moved
// by libfaketime (the JVM does not start under it), and the server's is the real one: what counts is the difference.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

class KeycloakClock : public SharedKeycloak {
 protected:
  KeycloakClock() : SharedKeycloak("clock") {}
  ~KeycloakClock() override { move_to("+0s"); }

  static bool can_move() { return std::getenv("FAKETIME_TIMESTAMP_FILE") != nullptr; }
  static void move_to(const std::string& offset) {
    if (!can_move()) return;
    const std::string file = std::getenv("FAKETIME_TIMESTAMP_FILE"), next = file + ".next";
    std::ofstream(next) << offset << "\n";
    std::filesystem::rename(next, file);  // it is read at any moment
  }
  /// Seconds by which this process is ahead of the server.
  std::int64_t ahead() const {
    admin("PUT", "", {{"displayName", std::to_string(++changes_)}});
    const auto server_ms = get("/admin-events?max=1").at(0).at("time").get<std::int64_t>();
    const auto here = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(here).count() - server_ms / 1000;
  }
  /// Returns what was seen of the client's description last; empty if nothing was.
  std::string described(const Collected& seen, const std::string& client) const {
    return seen.find("client", id(client)) == nullptr ? "" : seen.body("client", id(client)).value("description", "");
  }
  /// Expects that nothing is invented while nothing happens, and that a change is noticed by its event alone.
  void expect_followed(const std::string& client) const {
    const std::string uuid = make_client(client);
    const auto opened = probe({{"include", {"realm", "client"}}});
    const Collected listed = opened->refresh();
    ASSERT_EQ(listed.status, DRIFTD_OK);
    EXPECT_TRUE(listed.diagnostics.empty());
    EXPECT_TRUE(probe({{"include", {"realm", "client"}}})->refresh(listed.cursor).unchanged);
    bool changed = false;
    const Collected seen = opened->watch(
        listed.cursor, [&](const Collected& now) { return described(now, client) == "theirs"; },
        std::chrono::seconds(20),
        [&] {
          if (!std::exchange(changed, true)) admin("PUT", "/clients/" + uuid, {{"description", "theirs"}});
        });
    EXPECT_EQ(described(seen, client), "theirs") << "it was missed";
    EXPECT_NE(seen.cursor, "") << "a list was asked for";
    for (const auto& record : seen.records) EXPECT_FALSE(record.tombstone) << record.id << " was invented as gone";
    const auto at = json::parse(opened->read({{"realm", realm_}}).find("realm", realm_)->status);
    EXPECT_EQ(at.at("lastReconcileEventTime"), get("/admin-events?max=1").at(0).at("time")) << "the server's own time";
  }
  static inline int changes_ = 0;
};

TEST_F(KeycloakClock, AServerThatIsFiveMinutesBehindLosesNothing) {
  if (!can_move()) GTEST_SKIP() << "LOUD: not under libfaketime, as ctest runs it: clocks that differ are not tested";
  move_to("+300s");
  ASSERT_NEAR(ahead(), 300, 20) << "is faketime installed?";
  expect_followed("behind");
}

TEST_F(KeycloakClock, AServerThatIsFiveMinutesAheadLosesNothing) {
  if (!can_move()) GTEST_SKIP() << "LOUD: not under libfaketime, as ctest runs it: clocks that differ are not tested";
  move_to("-300s");
  ASSERT_NEAR(ahead(), -300, 20) << "is faketime installed?";
  expect_followed("ahead");
}

TEST_F(KeycloakClock, TheAgentsClockMayMoveBetweenTwoQuestions) {
  if (!can_move()) GTEST_SKIP() << "LOUD: not under libfaketime, as ctest runs it: clocks that differ are not tested";
  move_to("+300s");
  const std::string uuid = make_client("moved");
  const auto opened = probe({{"include", {"realm", "client"}}});
  const Collected listed = opened->refresh();
  int changes = 0;
  for (const char* offset : {"-300s", "+300s", "+0s"}) {
    const std::string description = "change " + std::to_string(++changes);
    bool changed = false;
    const auto noticed = [&](const Collected& now) { return described(now, "moved") == description; };
    const Collected seen = opened->watch(listed.cursor, noticed, std::chrono::seconds(20), [&] {
      if (std::exchange(changed, true)) return;
      move_to(offset);
      admin("PUT", "/clients/" + uuid, {{"description", description}});
    });
    EXPECT_TRUE(noticed(seen)) << offset;
  }
}

}  // namespace
}  // namespace driftd::test
