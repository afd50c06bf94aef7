// SPDX-License-Identifier: Apache-2.0
// Which notifications are due (delivery/notify.hpp).
#include "delivery/notify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace driftd::delivery {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Nanos ns(seconds time) { return std::chrono::nanoseconds(time).count(); }

struct Notifications : testing::Test {
  Notifications() {
    settings.on = true;
    input.now_ns = 1'000'000 * ns(seconds(1));
  }
  void drift(const std::string& id, const std::string& backend = "orders", const std::string& digest = "d1") {
    WaitingDrift one;
    one.id = id;
    one.digest = digest;
    one.backend = backend;
    one.kind = "topic";
    one.cls = "config";
    one.message = "Field topic/" + id + ":retention changed from 1 to 2";
    one.opened_ns = input.now_ns;
    input.waiting.push_back(one);
  }
  /// Returns the kinds of what is sent. The state goes through its text, as after a restart.
  std::vector<std::string> look() {
    NotifyOutcome outcome = notify(settings, parse_states(render_states(state)), input);
    state = outcome.next;
    next_ns = outcome.next_ns;
    notes = outcome.notes;
    std::vector<std::string> kinds;
    for (const auto& note : notes) kinds.push_back(note.kind);
    sent += notes.size();
    return kinds;
  }
  std::vector<std::string> after(seconds time) {
    input.now_ns += ns(time);
    return look();
  }
  /// Goes from one time at which something may be due to the next, until `until`.
  void run(Nanos until) {
    look();
    while (next_ns != 0 && next_ns <= until) {
      ASSERT_GT(next_ns, input.now_ns) << "it would look again and again";
      input.now_ns = next_ns;
      look();
    }
    input.now_ns = until;
  }
  NotifySettings settings;
  NotifyState state;
  NotifyInput input;
  std::vector<Note> notes;
  Nanos next_ns = 0;
  std::size_t sent = 0;
};

TEST_F(Notifications, FirstWaitsForTheGroupAndSaysWhatTheRfcSays) {
  drift("a");
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_EQ(next_ns, input.now_ns + ns(seconds(30)));
  drift("b");
  EXPECT_THAT(after(seconds(29)), IsEmpty());
  EXPECT_THAT(after(seconds(1)), ElementsAre("opened"));
  EXPECT_EQ(notes[0].title, "Backend drift detected: orders");
  EXPECT_EQ(notes[0].message,
            "Field topic/a:retention changed from 1 to 2\nField topic/b:retention changed from 1 to 2");
  EXPECT_THAT(after(seconds(1)), IsEmpty()) << "the same standing drifts";
}

TEST_F(Notifications, AnotherDriftAndAMovedValueWaitForTheInterval) {
  drift("a");
  look();
  EXPECT_THAT(after(seconds(30)), ElementsAre("opened"));
  input.waiting.front().digest = "d2";
  EXPECT_THAT(after(seconds(10)), IsEmpty());
  EXPECT_THAT(after(minutes(5)), ElementsAre("changed"));
  EXPECT_THAT(after(minutes(5)), IsEmpty());
}

TEST_F(Notifications, ReminderComesAgainAndAgain) {
  drift("a");
  look();
  after(seconds(30));
  EXPECT_THAT(after(hours(4)), ElementsAre("reminder"));
  EXPECT_THAT(after(hours(4) - seconds(1)), IsEmpty());
  EXPECT_THAT(after(seconds(1)), ElementsAre("reminder"));
}

TEST_F(Notifications, EndIsTold) {
  drift("a");
  look();
  after(seconds(30));
  input.waiting.clear();
  EXPECT_THAT(after(seconds(1)), ElementsAre("ended"));
  EXPECT_EQ(notes[0].title, "Backend drift ended: orders");
  EXPECT_THAT(after(hours(5)), IsEmpty());
  EXPECT_THAT(state.groups, IsEmpty()) << "nothing is remembered for ever";
}

TEST_F(Notifications, WhatWentBeforeItWasToldIsNotTold) {
  drift("a");
  look();
  input.waiting.clear();
  EXPECT_THAT(after(seconds(10)), IsEmpty());
  EXPECT_THAT(after(hours(1)), IsEmpty());
  EXPECT_THAT(state.groups, IsEmpty());
}

TEST_F(Notifications, BackendThatIsDownIsMutedAndItsDriftsAreToldAfterwards) {
  drift("a");
  input.down = {"orders"};
  look();
  EXPECT_THAT(after(hours(1)), IsEmpty());
  input.down.clear();
  EXPECT_THAT(after(seconds(1)), ElementsAre("opened"));
  EXPECT_THAT(notes[0].message, HasSubstr("held back while orders was down"));
}

TEST_F(Notifications, WhatIsSilencedIsInNoNotification) {
  drift("a");
  drift("b");
  input.waiting[1].silenced = true;
  EXPECT_THAT(after(minutes(1)), ElementsAre("opened"));
  EXPECT_EQ(notes[0].count, 1);
  input.waiting[0].silenced = true;
  EXPECT_THAT(after(hours(5)), IsEmpty());
}

/// A silence is no decision: what it hides still waits for one.
TEST_F(Notifications, WhatIsSilencedHasNotEnded) {
  drift("a");
  run(input.now_ns + ns(minutes(1)));
  ASSERT_EQ(sent, 1u);
  input.waiting[0].silenced = true;
  run(input.now_ns + ns(hours(1)));
  EXPECT_EQ(sent, 1u) << "neither an end nor a reminder";
  input.waiting[0].silenced = false;
  run(input.now_ns + ns(hours(4)));
  EXPECT_EQ(sent, 2u) << "the reminders go on";
  input.waiting[0].silenced = true;
  drift("b");
  run(input.now_ns + ns(minutes(10)));
  ASSERT_EQ(sent, 3u);
  input.waiting.clear();
  run(input.now_ns + ns(minutes(10)));
  EXPECT_EQ(sent, 4u) << "now it has ended";
}

TEST_F(Notifications, EscalationComesOnceUnlessSomebodyClaimed) {
  settings.escalate_after = hours(1);
  drift("a");
  look();
  after(seconds(30));
  input.waiting.front().claimed = true;
  EXPECT_THAT(after(hours(1)), IsEmpty());
  input.waiting.front().claimed = false;
  EXPECT_THAT(after(seconds(1)), ElementsAre("escalation"));
  EXPECT_THAT(after(hours(1)), IsEmpty());
}

TEST_F(Notifications, GroupThatFlapsIsSentEverMoreRarely) {
  settings.max_per_hour = 1'000;
  settings.group_wait = seconds(0);
  for (int i = 0; i < 24 * 60; ++i) {  // every minute it begins, and half a minute later it ends
    input.now_ns += ns(seconds(30));
    drift("a");
    look();
    input.now_ns += ns(seconds(30));
    input.waiting.clear();
    look();
  }
  EXPECT_LT(sent, 30u);
  EXPECT_GT(sent, 4u);
}

TEST_F(Notifications, GroupsAreMadeAsConfigured) {
  settings.group_by = {"label:team", "class"};
  drift("a", "orders");
  drift("b", "stock");
  drift("c", "users");
  input.waiting[0].labels = input.waiting[1].labels = {{"team", "shop"}};
  look();
  EXPECT_THAT(after(seconds(30)), ElementsAre("opened", "opened"));
  EXPECT_EQ(notes[1].title, "Backend drift detected: shop, config");
  EXPECT_EQ(notes[1].count, 2u);
  EXPECT_EQ(notes[1].backend, "") << "it is about several";
}

TEST_F(Notifications, ListIsBounded) {
  for (int i = 0; i < 100; ++i) drift("d" + std::to_string(i));
  look();
  after(seconds(30));
  EXPECT_THAT(notes.at(0).listed, SizeIs(20));
  EXPECT_THAT(notes[0].message, HasSubstr("and 80 more: driftd drifts --status pending --backend orders"));
}

/// The promise of design/delivery.md, over as many backends as there are drifts and over one.
TEST_F(Notifications, TenThousandDriftsAtOnceAreTwentyNotificationsAtMost) {
  for (const int backends : {1, 7, 100, 10'000}) {
    state = {};
    sent = 0;
    input.waiting.clear();
    for (int i = 0; i < 10'000; ++i) drift("d" + std::to_string(i), "b" + std::to_string(i % backends));
    const Nanos began = input.now_ns;
    run(began + ns(seconds(30)));
    EXPECT_GT(sent, 0u) << "the first comes with the group wait";
    run(began + ns(minutes(59)));
    EXPECT_LE(sent, 20u) << backends;
    std::size_t told = 0;
    for (const auto& [key, group] : state.groups) told += group.reported.size();
    EXPECT_EQ(told, 10'000u) << "nothing is forgotten";
  }
}

TEST_F(Notifications, NoHourHasMoreThanItsMaximum) {
  settings.group_wait = seconds(1);
  settings.group_interval = seconds(1);
  settings.max_per_hour = 5;
  std::mt19937 random(7);
  std::vector<Nanos> times;
  for (int step = 0; step < 3'000; ++step) {
    input.now_ns += ns(seconds(1 + random() % 60));
    if (random() % 3 == 0) input.waiting.clear();
    drift("d" + std::to_string(random() % 50), "b" + std::to_string(random() % 30));
    look();
    for (std::size_t i = 0; i < notes.size(); ++i) times.push_back(input.now_ns);
  }
  for (std::size_t i = 5; i < times.size(); ++i) EXPECT_GE(times[i] - times[i - 5], ns(hours(1)));
  EXPECT_GT(times.size(), 50u);
}

TEST_F(Notifications, ClockThatWasSetBackSilencesNothing) {
  drift("a");
  look();
  after(seconds(30));
  input.now_ns -= ns(hours(1'000));
  drift("b");
  look();
  EXPECT_THAT(after(minutes(5)), ElementsAre("changed"));
}

}  // namespace
}  // namespace driftd::delivery
