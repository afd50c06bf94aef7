// SPDX-License-Identifier: Apache-2.0
// The disk changes rows under a running agent. What is mended in the store is no longer what the engine and the lanes
// hold in memory, so the agent ends with it and begins anew from the store.
#include <gmock/gmock.h>

#include "fault/store/child.hpp"

namespace driftd::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Seqs = std::vector<std::int64_t>;

constexpr int kBelieved = 3;  // the agent goes on with what was undone

core::Drift drift_of(const std::string& resource) {
  core::Drift drift;
  drift.id = "d-" + resource;
  drift.backend_uid = backend_row().uid;
  drift.resource = {"config", resource};
  drift.changes = {{"a", core::ChangeClass::config, "1", "2", false}};
  drift.digest = core::digest_of(drift.changes, drift.against);
  return drift;
}

/// Resources `first` and `drifting`, a declaration, two sinks with ten events each; of those of `ops` the second fails
/// and the third is a dead letter, five are settled.
void fill(Bench& bench) {
  for (const auto& sink : {"ops", "desk"}) bench.get(bench->open_sink(sink));
  auto page = page_of({resource_write("first"), resource_write("drifting")});
  page.writes[1].next.open = {drift_of("drifting")};
  page.writes[1].next.digest = {7, 7};
  page.cursor = "c-1";
  core::DeclarationWrite declared;
  declared.target = "kafka";
  declared.declaration.source_uid = backend_row().uid;
  declared.declaration.id = {"topic", "orders"};
  declared.declaration.body = "{}";
  page.declarations = {declared};
  for (int i = 0; i < 10; ++i) page.events.push_back(event_draft("r" + std::to_string(i), {"ops", "desk"}));
  bench.get(bench->commit(page));
  bench.get(bench->settle({"ops", 5, {{2, 1, 0, false, "HTTP 500"}, {3, 9, 0, true, "HTTP 400"}}, {}, {}, {}}));
  bench.get(bench->settle({"desk", 8, {}, {}, {}, {}}));
}

class MendedRowsTest : public ::testing::Test {
 protected:
  /// Changes rows under a running agent and does `next` there; its exit code.
  int under_the_agent(const std::string& sql, const std::function<void(Bench&)>& next) {
    return store_in_child(data, [&](Bench& bench) {
      fill(bench);
      tamper(data + "/store.db", sql);
      next(bench);
    });
  }
  Seqs waiting(const std::string& sink) {
    const auto cursor = bench.get(bench->open_sink(sink));
    Seqs out;
    for (const auto& one : cursor.exceptions) out.push_back(one.seq);
    for (const auto& event : bench.get(bench->fetch(sink, cursor.low_water, 1000))) {
      if (!event.agent_event) out.push_back(event.stamp.seq);
    }
    return out;
  }
  std::int64_t told() {
    std::int64_t out = 0;
    for (const auto& event : bench.get(bench->events(0, 1000))) out += event.what == "corrupt" ? 1 : 0;
    return out;
  }
  static void load(Bench& bench, const std::string& id) {
    if (bench.wait(bench->load(backend_row().uid, {{"config", id}}))) ::_exit(kBelieved);
  }

  /// As a reload does: reads the wrong delivery.
  static Task<Status> open(Bench& bench, std::string sink) {
    const auto cursor = co_await bench->open_sink(std::move(sink));
    if (!cursor) co_return fail(cursor.error());
    co_return Status{};
  }

  TempDir dir;
  std::string data = dir.file("data");
  Bench bench{data};
};

constexpr const char* kWrongDrift = "UPDATE drift SET status = 'ignored'";
constexpr const char* kWrongMark = "UPDATE sink SET low_water = low_water + 2 WHERE name = 'ops'";
const Seqs kAll{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

TEST_F(MendedRowsTest, RowThatIsLoadedEndsTheAgentWithAllThatWasMended) {
  const int code =
      under_the_agent(std::string(kWrongDrift) + "; UPDATE resource SET version = 'x' WHERE name = 'first'",
                      [&](Bench& bench) { load(bench, "first"); });
  EXPECT_EQ(code, kFailStop);
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(told(), 2);
  for (const auto& entry : bench.get(bench->index(backend_row().uid))) {
    EXPECT_EQ(entry.digest, Digest{}) << "the engine's index says again that it is to be judged: " << entry.id.id;
    EXPECT_FALSE(entry.has_open);
  }
  EXPECT_EQ(bench.get(bench->backends()).front().cursor, "");
  bench.close();
  EXPECT_EQ(store_in_child(data,
                           [](Bench& again) {
                             again.get(again->load(backend_row().uid, {{"config", "first"}, {"config", "drifting"}}));
                           }),
            0)
      << "a row that was mended is right: the agent does not end again";
}

TEST_F(MendedRowsTest, DeclarationThatWentIsKnownToNobodyAfterwards) {
  const int code =
      under_the_agent("UPDATE declaration SET body = '{ }'; UPDATE resource SET version = 'x' WHERE name = 'first'",
                      [&](Bench& bench) { load(bench, "first"); });
  EXPECT_EQ(code, kFailStop);
  ASSERT_TRUE(bench.open());
  EXPECT_TRUE(bench.get(bench->declared_by(backend_row().uid)).empty());
}

TEST_F(MendedRowsTest, DriftThatIsDecidedEndsTheAgentToo) {
  const int code = under_the_agent(kWrongDrift, [&](Bench& bench) {
    if (bench.wait(bench->owner_of("d-drifting"))) ::_exit(kBelieved);
  });
  EXPECT_EQ(code, kFailStop);
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(told(), 1);
}

TEST_F(MendedRowsTest, MarkThatIsTakenBackIsNotSettledOver) {
  const int code = under_the_agent(kWrongMark, [](Bench& bench) {
    if (bench.wait(bench->settle({"ops", 8, {}, {}, {}, {}}))) ::_exit(kBelieved);
  });
  EXPECT_EQ(code, kFailStop);
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(waiting("ops"), kAll) << "the failing one and the dead letter, too";
  EXPECT_EQ(waiting("desk"), (Seqs{9, 10}));
}

/// Where a delivery is wrong all sinks get all again: no settlement of the same moment runs behind that, whoever's it
/// is.
TEST_F(MendedRowsTest, WrongDeliveryTakesAllMarksBackAndNothingOfTheMomentPassesThem) {
  const int code = under_the_agent("UPDATE delivery SET dead = 1", [](Bench& bench) {
    std::vector<Task<Status>> together;
    for (const auto* sink : {"ops", "desk", "desk"}) together.push_back(bench->settle({sink, 9, {}, {}, {}, {}}));
    together.push_back(open(bench, "ops"));
    for (int i = 0; i < 3; ++i) together.push_back(bench->settle({"desk", 10, {}, {}, {}, {}}));
    if (!bench.wait_all(std::move(together)).empty()) ::_exit(kBelieved);
  });
  EXPECT_EQ(code, kFailStop);
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(waiting("ops"), kAll);
  EXPECT_EQ(waiting("desk"), kAll);
  for (const auto& book : bench.get(bench->sink_totals()))
    EXPECT_EQ(book.emitted, book.acked + book.pending + book.dead + book.dropped) << book.sink;
}

/// It would not be right after a restart either: the caller is told each time, and the agent goes on with the others.
TEST_F(MendedRowsTest, WhatCannotBeMendedEndsNothing) {
  const int code = under_the_agent(
      "UPDATE backend SET sequence = sequence - 1; UPDATE resource SET version = 'x' WHERE name = 'first'",
      [](Bench& bench) {
        for (int i = 0; i < 3; ++i) {
          const auto rows = bench.wait(bench->load(backend_row().uid, {{"config", "first"}}));
          if (rows || rows.error().code != Code::corrupt) ::_exit(kBelieved);
        }
        bench.get(bench->settle({"desk", 10, {}, {}, {}, {}}));
      });
  EXPECT_EQ(code, 0);
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("backend orders"), HasSubstr("driftd restore")));
}

/// A start would find nothing to mend, and end at the same place again, for ever.
TEST_F(MendedRowsTest, RowThatIsSignedAndCannotBeReadEndsNothing) {
  const int code = under_the_agent("UPDATE sink SET notes = 'x', crc = NULL WHERE name = 'ops'", [](Bench& bench) {
    const auto cursor = bench.wait(bench->open_sink("ops"));
    if (cursor || cursor.error().code != Code::corrupt) ::_exit(kBelieved);
  });
  EXPECT_EQ(code, 0);
}

/// A disk that is full takes no mend: nothing stands of it, and the agent does not end for it.
TEST_F(MendedRowsTest, MendThatIsNotStoredEndsNothing) {
  const int code = under_the_agent(std::string(kWrongMark) +
                                       "; CREATE TRIGGER no BEFORE UPDATE ON meta WHEN new.key = 'commits' "
                                       "BEGIN SELECT RAISE(ABORT, 'full'); END",
                                   [&](Bench& bench) {
                                     if (bench.wait(bench->settle({"ops", 8, {}, {}, {}, {}}))) ::_exit(kBelieved);
                                     tamper(data + "/store.db", "DROP TRIGGER no");
                                   });
  EXPECT_EQ(code, 0);
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(told(), 1) << "by this start";
  EXPECT_EQ(waiting("ops"), kAll);
}

}  // namespace
}  // namespace driftd::test
