// SPDX-License-Identifier: Apache-2.0
// A store that is larger than it may be: what is deleted, in which order, and what never is.
#include <gmock/gmock.h>

#include "proto/codec.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Seqs = std::vector<std::int64_t>;

constexpr std::size_t kLargePayload = 64u << 10;  // bytes of an event in these tests

class ShrinkTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    bench.get(bench->open_sink("ops"));
    bench.get(bench->open_sink("desk"));
    empty_ = bytes();
  }
  Seqs emit_large(int count, const std::vector<std::string>& sinks = {"ops"}) {
    Seqs out;
    for (int i = 0; i < count; ++i) {
      core::EventDraft draft = large_draft("r" + std::to_string(i), kLargePayload);
      draft.sinks = sinks;
      for (const auto& event : bench.get(bench->commit(page_of({}, {draft}))).events) out.push_back(event.stamp.seq);
    }
    return out;
  }
  void settle(core::SinkSettlement settlement) { bench.get(bench->settle(std::move(settlement))); }
  std::int64_t bytes() { return bench.get(bench->shrink(INT64_MAX)).bytes; }
  /// Calls shrink() until it has nothing more to do.
  store::Shrunk shrink_to(std::int64_t max) {
    store::Shrunk sum;
    for (int call = 0; call < 100; ++call) {
      const auto step = bench.get(bench->shrink(max));
      sum.bytes = step.bytes;
      sum.events += step.events;
      sum.drifts += step.drifts;
      if (!step.more) return sum;
    }
    ADD_FAILURE() << "shrink() goes on for ever";
    return sum;
  }
  Seqs left() {
    Seqs out;
    for (const auto& event : bench.get(bench->events(0, 100'000))) out.push_back(event.stamp.seq);
    return out;
  }
  std::vector<std::string> gaps() {
    std::vector<std::string> out;
    for (const auto& event : bench.get(bench->events(0, 100'000))) {
      if (event.what == "gap") out.push_back(proto::to_json(event).value());
    }
    return out;
  }

  std::int64_t empty_ = 0;  ///< bytes of the store before anything happened
};

TEST_F(ShrinkTest, AStoreThatIsSmallEnoughKeepsAll) {
  const auto seqs = emit_large(5);
  settle({"ops", seqs.back(), {}, {}, {}});
  const auto done = shrink_to(bytes());
  EXPECT_EQ(done.events, 0);
  EXPECT_EQ(left(), seqs);
}

TEST_F(ShrinkTest, DeliveredEventsGoAndTheirRoomIsUsedAgain) {
  const std::int64_t max = empty_ + 40 * static_cast<std::int64_t>(kLargePayload);
  std::int64_t most = 0;
  for (int round = 0; round < 6; ++round) {
    const auto seqs = emit_large(30);
    settle({"ops", seqs.back(), {}, {}, {}});
    EXPECT_LE(shrink_to(max).bytes, max);
    most = std::max(most, static_cast<std::int64_t>(std::filesystem::file_size(file())));
  }
  EXPECT_LT(most, empty_ + 100 * static_cast<std::int64_t>(kLargePayload)) << "the file grows with every round";
  EXPECT_EQ(book("ops").dropped, 0) << "what was delivered is no loss";
}

TEST_F(ShrinkTest, WhatASinkWaitsForStaysWhereverItStands) {
  const auto seqs = emit_large(30);
  settle({"ops", seqs[19], {{seqs[3], 1, 0, false, "refused"}}, {}, {}});  // settles all up to there except the fourth
  const auto done = shrink_to(empty_);
  EXPECT_EQ(done.events, 19);
  EXPECT_GT(done.bytes, empty_);
  Seqs waits(seqs.begin() + 20, seqs.end());
  waits.insert(waits.begin(), seqs[3]);
  EXPECT_EQ(left(), waits);
  EXPECT_THAT(gaps(), IsEmpty());
}

TEST_F(ShrinkTest, AnEventThatOneOfTwoSinksHasStays) {
  const auto seqs = emit_large(3, {"ops", "desk"});
  settle({"ops", seqs.back(), {}, {}, {}});
  EXPECT_EQ(shrink_to(empty_).events, 0);
  EXPECT_EQ(left(), seqs);
}

TEST_F(ShrinkTest, WhatIsDeliveredLaterGoesThen) {
  const auto seqs = emit_large(5);
  ASSERT_EQ(shrink_to(empty_).events, 0);
  settle({"ops", seqs.back(), {}, {}, {}});
  EXPECT_EQ(shrink_to(empty_).events, 5) << "the search has to begin from the start again";
}

TEST_F(ShrinkTest, DeadLettersAreSparedWhileAnythingElseMayGo) {
  const auto seqs = emit_large(20);
  settle({"ops", seqs.back(), {{seqs[0], 10, 0, true, "HTTP 422"}, {seqs[1], 10, 0, true, "HTTP 422"}}, {}, {}});
  const auto done = shrink_to(empty_ + 10 * static_cast<std::int64_t>(kLargePayload));
  EXPECT_GT(done.events, 0);
  EXPECT_THAT(bench.get(bench->dead_letters("ops", 10)), SizeIs(2));
  EXPECT_THAT(gaps(), IsEmpty());
}

TEST_F(ShrinkTest, DeadLettersGoWhereNothingElseIsLeftAndThatIsTold) {
  const auto seqs = emit_large(20);
  core::SinkSettlement all_dead{"ops", seqs.back(), {}, {}, {}};
  for (const auto seq : seqs) all_dead.upsert.push_back({seq, 10, 0, true, "HTTP 422"});
  settle(std::move(all_dead));
  EXPECT_EQ(shrink_to(empty_).events, 20);
  EXPECT_THAT(bench.get(bench->dead_letters("ops", 10)), IsEmpty());
  ASSERT_THAT(gaps(), SizeIs(1));
  EXPECT_THAT(gaps().front(), HasSubstr("20 events"));
  EXPECT_THAT(gaps().front(), HasSubstr("store_full"));
  const auto ops = book("ops");
  EXPECT_EQ(ops.dropped, 20);
  EXPECT_EQ(ops.dropped_by.at("store_full"), 20);
  EXPECT_EQ(ops.emitted, ops.acked + ops.pending + ops.dead + ops.dropped);
}

TEST_F(ShrinkTest, DeadLettersGoThoughSomethingIsDeliveredAllTheTime) {
  Seqs dead;
  for (int i = 0; i < 3; ++i) {  // more than one slice
    const auto some = emit(500);
    dead.insert(dead.end(), some.begin(), some.end());
  }
  core::SinkSettlement all_dead{"ops", dead.back(), {}, {}, {}};
  for (const auto seq : dead) all_dead.upsert.push_back({seq, 10, 0, true, "HTTP 422"});
  settle(std::move(all_dead));
  const std::int64_t max = bytes() - 200'000;
  int calls = 0;
  while (bench.get(bench->shrink(max)).bytes > max) {
    ASSERT_LT(++calls, 40) << "what is delivered meanwhile keeps dead letters for ever";
    emit(1, {"desk"});
    settle({"desk", emit(1, {"desk"}).back(), {}, {}, {}});
  }
  EXPECT_LT(book("ops").dead, 1'500);
}

/// Delivered events of an earlier slice must not save the dead letters of later slices.
TEST_F(ShrinkTest, DeadLettersGoThoughABacklogInFrontOfThemDrains) {
  Seqs front, dead;
  for (int i = 0; i < 4; ++i) {
    const auto some = emit(500);
    auto& half = i < 2 ? front : dead;
    half.insert(half.end(), some.begin(), some.end());
  }
  core::SinkSettlement half_dead{"ops", dead.back(), {}, {}, {}};
  for (const auto seq : front) half_dead.upsert.push_back({seq, 1, 0, false, "refused"});
  for (const auto seq : dead) half_dead.upsert.push_back({seq, 10, 0, true, "HTTP 422"});
  settle(std::move(half_dead));
  const std::int64_t max = bytes() - 200'000;
  for (std::size_t call = 0; bench.get(bench->shrink(max)).bytes > max; ++call) {
    ASSERT_LT(call, 40U) << "a backlog that drains keeps dead letters for ever";
    settle({"ops", dead.back(), {}, {front[call]}, {}});
  }
  EXPECT_LT(book("ops").dead, 1'000);
}

TEST_F(ShrinkTest, WhatIsDeliveredWhileDeadLettersGoIsTakenFirst) {
  const auto dead = emit_large(5), waiting = emit_large(30);
  core::SinkSettlement some{"ops", dead.back(), {}, {}, {}};
  for (const auto seq : dead) some.upsert.push_back({seq, 10, 0, true, "HTTP 422"});
  settle(std::move(some));
  const std::int64_t max = bytes() - 2 * static_cast<std::int64_t>(kLargePayload);
  ASSERT_TRUE(bench.get(bench->shrink(max)).more) << "nothing but dead letters may go: the next pass takes them";
  settle({"ops", waiting.back(), {}, {}, {}});  // delivered between the passes
  shrink_to(max);
  EXPECT_THAT(bench.get(bench->dead_letters("ops", 10)), SizeIs(5));
}

TEST_F(ShrinkTest, NoMoreGoesThanHasTo) {
  const auto seqs = emit_large(200);
  settle({"ops", seqs.back(), {}, {}, {}});
  const auto done = shrink_to(bytes() - 1);
  EXPECT_GT(done.events, 0);
  EXPECT_LE(done.events, 32);
}

TEST_F(ShrinkTest, ASliceThatCannotBeCommittedIsLookedAtAgain) {
  const auto seqs = emit_large(20);
  settle({"ops", seqs.back(), {}, {}, {}});
  tamper(file(), "CREATE TRIGGER full BEFORE DELETE ON event WHEN old.seq = " + std::to_string(seqs[10]) +
                     " BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END");
  EXPECT_FALSE(bench.wait(bench->shrink(empty_)));
  EXPECT_EQ(left(), seqs);
  tamper(file(), "DROP TRIGGER full");
  const auto done = bench.get(bench->shrink(bytes() - 1));
  EXPECT_FALSE(done.more) << "what the failed slice looked at is not looked at again";
  EXPECT_EQ(left().front(), seqs[done.events]) << "the oldest go first";
}

TEST_F(ShrinkTest, DriftsThatEndedGoAndOpenOnesStay) {
  const auto drift = [](const std::string& id) {
    core::Drift out;
    out.id = id;
    out.backend_uid = backend_row().uid;
    out.resource = {"config", "a"};
    out.reason = std::string(kLargePayload, 'r');
    return out;
  };
  core::ResourceWrite write = resource_write("a");
  write.next.open = {drift("d-open")};
  write.ended = {drift("d-ended")};
  bench.get(bench->commit(page_of({write})));
  EXPECT_EQ(shrink_to(empty_).drifts, 1);
  core::DriftFilter all;
  all.all = true;
  std::vector<std::string> ids;
  for (const auto& row : bench.get(bench->drifts(all))) ids.push_back(row.drift.id);
  EXPECT_THAT(ids, ElementsAre("d-open"));
}

TEST_F(ShrinkTest, WhatCameAndWentIsForgottenTheOldestFirst) {
  const auto gone = [](const std::string& name, Nanos at) {
    auto write = resource_write(name);
    write.next.baseline = write.next.observed = std::nullopt;
    write.next.observed_ns = at;
    return write;
  };
  auto missing = resource_write("missing");  // it was accepted, so its absence is a drift
  missing.next.observed = std::nullopt;
  bench.get(
      bench->commit(page_of({gone("young", 30), gone("old", 10), gone("older", 5), missing, resource_write("there")})));
  const std::string uid = backend_row().uid;
  EXPECT_THAT(bench.get(bench->forget_gone(uid, 2)),
              ::testing::UnorderedElementsAre(core::ResourceId{"config", "old"}, core::ResourceId{"config", "older"}));
  EXPECT_THAT(bench.get(bench->forget_gone(uid, 10)), ElementsAre(core::ResourceId{"config", "young"}));
  EXPECT_THAT(bench.get(bench->forget_gone(uid, 10)), IsEmpty());
  EXPECT_THAT(bench.get(bench->index(uid)), SizeIs(2));
}

TEST_F(ShrinkTest, AKindIsForgottenWithItsBaselineButNotWhatHasOpenDrifts) {
  auto open = resource_write("open");
  core::Drift drift;
  drift.id = "d-0123456789abcdef";
  drift.backend_uid = backend_row().uid;
  drift.resource = open.next.id;
  drift.changes = {{"a", core::ChangeClass::config, "1", "2", false}};
  open.next.open.push_back(drift);
  auto other = resource_write("other");
  other.next.id.kind = "role";
  auto page = page_of({resource_write("one"), resource_write("two"), open, other});
  page.established = {"config", "role"};
  bench.get(bench->commit(page));
  const std::string uid = backend_row().uid;
  const auto established = [&] { return bench.get(bench->backends()).at(0).established; };
  EXPECT_TRUE(bench.get(bench->forget_kind(uid, "config", 1))) << "there is more";
  EXPECT_FALSE(bench.get(bench->forget_kind(uid, "config", 10)));
  EXPECT_THAT(bench.get(bench->index(uid)), SizeIs(2));
  EXPECT_TRUE(established().contains("config")) << "one with an open drift is left";
  open.next.open.clear();
  open.next.revision = 1;
  bench.get(bench->commit(page_of({open})));
  EXPECT_FALSE(bench.get(bench->forget_kind(uid, "config", 10)));
  EXPECT_FALSE(established().contains("config"));
  EXPECT_TRUE(established().contains("role"));
  EXPECT_THAT(bench.get(bench->index(uid)), SizeIs(1));
}

}  // namespace
}  // namespace driftd::test
