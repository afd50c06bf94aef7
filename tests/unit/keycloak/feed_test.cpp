// SPDX-License-Identifier: Apache-2.0
// How far the admin events were read. Every time here is the server's; the clock of this machine is in none of it, so a
// server whose clock is five minutes off is followed like any other.
#include <gmock/gmock.h>

#include "keycloak/event_feed.hpp"

namespace driftd::keycloak {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::int64_t kNow = 1'795'000'000'000;
constexpr std::int64_t kMinute = 60'000;

AdminEvent event(const std::string& id, std::int64_t time_ms, const std::string& path = "clients/U") {
  AdminEvent out;
  out.id = id;
  out.time_ms = time_ms;
  out.operation = "UPDATE";
  out.resource_type = "CLIENT";
  out.path = path;
  return out;
}

TEST(KeycloakRealmFeed, BeginsAtTheServersTimeWithAnOverlap) {
  EXPECT_EQ(RealmFeed(kNow, seconds(60)).from_ms(), kNow - kMinute);
  EXPECT_EQ(RealmFeed(kNow - 5 * kMinute, seconds(60)).from_ms(), kNow - 6 * kMinute) << "a server that is behind";
}

TEST(KeycloakRealmFeed, AnEventThatCommitsLateIsFreshThoughNewerOnesWereSeen) {
  RealmFeed feed(kNow, seconds(60));
  feed.commit({event("new", kNow + 5000)}, kNow + 6000, true);
  const std::vector<AdminEvent> answer{event("late", kNow + 1000), event("new", kNow + 5000)};
  ASSERT_THAT(feed.fresh(answer), SizeIs(1));
  EXPECT_EQ(feed.fresh(answer)[0].id, "late");
  EXPECT_GE(feed.from_ms(), kNow - kMinute);
  EXPECT_LE(feed.from_ms(), kNow + 1000) << "the late one is asked for";
}

TEST(KeycloakRealmFeed, EventsOfOneMillisecondAreTwoAndEachCountsOnce) {
  RealmFeed feed(kNow, seconds(60));
  feed.commit({event("a", kNow + 1)}, kNow + 2, true);
  const std::vector<AdminEvent> answer{event("a", kNow + 1), event("b", kNow + 1)};
  ASSERT_THAT(feed.fresh(answer), SizeIs(1));
  feed.commit(answer, kNow + 3, true);
  EXPECT_THAT(feed.fresh(answer), IsEmpty());
}

TEST(KeycloakRealmFeed, FreshEventsStayFreshUntilTheyAreCommitted) {
  const RealmFeed feed(kNow, seconds(60));
  EXPECT_THAT(feed.fresh({event("a", kNow)}), SizeIs(1));
  EXPECT_THAT(feed.fresh({event("a", kNow)}), SizeIs(1));
}

TEST(KeycloakRealmFeed, AGapLongerThanTheExpirationMayHaveLostEvents) {
  RealmFeed feed(kNow, seconds(60));
  EXPECT_FALSE(feed.expired(kNow + 1000 * kMinute)) << "events are kept for ever";
  feed.set_expiration(seconds(900));
  EXPECT_FALSE(feed.expired(kNow + 15 * kMinute));
  EXPECT_TRUE(feed.expired(kNow + 15 * kMinute + 1));
  feed.commit({}, kNow + 15 * kMinute, false);
  EXPECT_FALSE(feed.expired(kNow + 16 * kMinute)) << "asked without an answer counts as asked";
}

TEST(KeycloakRealmFeed, ASeenEventThatIsMissingWasDeletedUnlessItExpired) {
  RealmFeed feed(kNow, seconds(60));
  feed.commit({event("a", kNow + 10)}, kNow + 20, true);
  EXPECT_FALSE(feed.vanished({event("a", kNow + 10)}, kNow + 30));
  EXPECT_TRUE(feed.vanished({}, kNow + 30));
  feed.set_expiration(seconds(900));
  EXPECT_TRUE(feed.vanished({}, kNow + 30));
  EXPECT_FALSE(feed.vanished({}, kNow + 16 * kMinute));
}

TEST(KeycloakRealmFeed, AServerWhoseClockGoesBackMayHideEvents) {
  RealmFeed feed(kNow, seconds(60));
  feed.commit({event("a", kNow + 10)}, kNow + 20, true);
  EXPECT_EQ(feed.stepped_back(kNow + 20 - 5 * kMinute), milliseconds(5 * kMinute));
  EXPECT_EQ(feed.stepped_back(kNow - 9'000).count(), 0) << "the overlap covers it";
  EXPECT_EQ(feed.stepped_back(kNow + 5 * kMinute).count(), 0) << "forward hides nothing";
  EXPECT_EQ(RealmFeed(kNow, seconds(1)).stepped_back(kNow - 2'000).count(), 0) << "tokens say whole seconds";
  EXPECT_EQ(RealmFeed(kNow, seconds(1)).stepped_back(kNow - 4'000).count(), 4'000);
}

TEST(KeycloakRealmFeed, WhatAnEventNamesIsReadOnceMoreWhenTheCachesHaveSettled) {
  RealmFeed feed(kNow, seconds(60));
  feed.commit({event("a", kNow)}, kNow, true);
  EXPECT_THAT(feed.due(kNow + 2999), IsEmpty());
  EXPECT_THAT(feed.due(kNow + 3000), SizeIs(1));
  feed.commit({event("a", kNow)}, kNow + 3000, true);  // the same event again is no new reason
  feed.settle(kNow + 3000);
  EXPECT_TRUE(feed.is_settled());
}

TEST(KeycloakRealmFeed, TheTimeThatIsShownIsThatOfTheLastEventThatConcernedAResource) {
  RealmFeed feed(kNow, seconds(60));
  feed.commit({event("a", kNow + 1), event("b", kNow + 2, "users/U")}, kNow + 3, true);
  EXPECT_EQ(feed.last_reconcile_event_ms(), kNow + 1);
  EXPECT_EQ(feed.last_ms(), kNow + 2);
}

class KeycloakEventFeed : public testing::Test {
 protected:
  EventFeed::Start seen(std::int64_t now = kNow) const { return {"uuid", RealmFeed(now, seconds(60))}; }
  EventFeed feed_{"scope", seconds(60)};
};

TEST_F(KeycloakEventFeed, ACursorBringsEachRealmBackToItsPlace) {
  feed_.start({{"orders", seen()}, {"dark", {"other", {}}}}, {});
  feed_.commit("orders", {event("a", kNow + 7)}, kNow + 9, true);
  EventFeed later("scope", seconds(60));
  ASSERT_TRUE(later.restore(feed_.cursor()));
  EXPECT_EQ(later.place("orders")->last_ms(), kNow + 7);
  EXPECT_EQ(later.place("orders")->polled_ms(), kNow + 9);
  EXPECT_EQ(later.place("orders")->last_reconcile_event_ms(), kNow + 7);
  EXPECT_THAT(later.realms(true), testing::ElementsAre("dark"));
  EXPECT_THAT(later.place("orders")->fresh({event("a", kNow + 7)}), IsEmpty()) << "it was seen before the restart";
  EXPECT_EQ(later.cursor(), feed_.cursor());
}

TEST_F(KeycloakEventFeed, ACursorOfAnotherScopeOrFormIsRefused) {
  feed_.start({{"orders", seen()}}, {});
  EXPECT_FALSE(EventFeed("another", seconds(60)).restore(feed_.cursor()));
  for (const char* text : {"", "junk", "{}", "[]", R"({"v":1})", R"({"v":1,"scope":"x","realms":{"a":3}})"})
    EXPECT_FALSE(EventFeed("scope", seconds(60)).restore(text)) << text;
}

// Found by driftd-check (refresh.garbage_cursor, seed 245725264159050849): a byte of the realm's UUID was flipped, and
// the cursor was taken.
TEST_F(KeycloakEventFeed, ACursorInWhichAnyByteIsAnotherOneIsRefused) {
  feed_.start({{"orders", seen()}, {"dark", {"other", {}}}}, {});
  feed_.commit("orders", {event("a", kNow + 7)}, kNow + 9, true);
  const std::string cursor = feed_.cursor();
  ASSERT_TRUE(EventFeed("scope", seconds(60)).restore(cursor));
  for (std::size_t at = 0; at < cursor.size(); ++at) {
    for (const char bits : {'\x01', '\x55'}) {
      std::string flipped = cursor;
      flipped[at] = static_cast<char>(flipped[at] ^ bits);
      EXPECT_FALSE(EventFeed("scope", seconds(60)).restore(flipped)) << flipped;
    }
    EXPECT_FALSE(EventFeed("scope", seconds(60)).restore(cursor.substr(0, at))) << "cut at " << at;
  }
  for (const char* more : {" ", "abc", "{}"}) EXPECT_FALSE(EventFeed("scope", seconds(60)).restore(cursor + more));
}

TEST_F(KeycloakEventFeed, ARealmThatWasReadFurtherDuringAListKeepsItsPlace) {
  feed_.start({{"orders", seen()}}, {});
  feed_.commit("orders", {event("a", kNow + 500)}, kNow + 600, true);
  feed_.start({{"orders", seen(kNow + 100)}}, {});
  EXPECT_EQ(feed_.place("orders")->last_ms(), kNow + 500);
}

TEST_F(KeycloakEventFeed, ARealmThatWasMadeAnewBeginsAnew) {
  feed_.start({{"orders", seen()}}, {});
  feed_.commit("orders", {event("a", kNow + 500)}, kNow + 600, true);
  feed_.start({{"orders", {"another uuid", RealmFeed(kNow + 100, seconds(60))}}}, {});
  EXPECT_EQ(feed_.place("orders")->last_ms(), kNow + 100);
}

TEST_F(KeycloakEventFeed, AListThatIsDueTakesTheCursorAwayAndIsNotForgotten) {
  const auto now = EventFeed::Steady::now();
  feed_.start({{"orders", seen()}}, now);
  feed_.note_round(now);
  EXPECT_TRUE(feed_.is_current(now, seconds(1)));
  feed_.require_list("orders", "events were deleted");
  EXPECT_FALSE(feed_.is_current(now, seconds(1)));
  EXPECT_EQ(feed_.cursor(), "");
  EXPECT_EQ(feed_.list_reason(), "realm orders: events were deleted");
  feed_.start({{"orders", seen()}}, now);
  EXPECT_EQ(feed_.list_reason(), "");
}

TEST_F(KeycloakEventFeed, IsNotCurrentWhenNobodyAskedForTooLong) {
  const auto now = EventFeed::Steady::now();
  feed_.start({{"orders", seen()}}, now);
  EXPECT_FALSE(feed_.is_current(now, seconds(20))) << "a list is no round of a watch";
  feed_.note_round(now);
  EXPECT_FALSE(feed_.is_current(now + seconds(21), seconds(20)));
  feed_.note_round(now + seconds(10));
  EXPECT_TRUE(feed_.is_current(now + seconds(21), seconds(20)));
}

}  // namespace
}  // namespace driftd::keycloak
