// SPDX-License-Identifier: Apache-2.0
// The disk changes rows under a running agent. The store repairs such a row. Then the engine and the sink runners have
// something else in memory than the store, so the agent ends, and starts again from the store.
#include <gmock/gmock.h>

#include "fault/store/child.hpp"

namespace driftd::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Seqs = std::vector<std::int64_t>;

constexpr int kAccepted = 3;  // the exit code of a child whose store used a wrong row

core::Drift drift_of(const std::string& resource) {
  core::Drift drift;
  drift.id = "d-" + resource;
  drift.backend_uid = backend_row().uid;
  drift.resource = {"config", resource};
  drift.changes = {{"a", core::ChangeClass::config, "1", "2", false}};
  drift.digest = core::digest_of(drift.changes, drift.against);
  return drift;
}

/// Stores the resources `first` and `drifting`, a declaration, and ten events for each of two sinks. `ops` has settled
/// the first five, except the second, which failed, and the third, which is a dead letter. `desk` has settled eight.
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
  /// Changes rows under a running agent and runs `next` in it. Returns its exit code.
  int under_the_agent(const std::string& sql, const std::function<void(Bench&)>& next) {
    return store_in_child(data, [&](Bench& bench) {
      fill(bench);
      tamper(data + "/store.db", sql);
      next(bench);
    });
  }
  /// Returns the events that a sink has not settled. Events about the agent itself do not count.
  Seqs undelivered(const std::string& sink) {
    const auto cursor = bench.get(bench->open_sink(sink));
    Seqs out;
    for (const auto& one : cursor.exceptions) out.push_back(one.seq);
    for (const auto& event : bench.get(bench->fetch(sink, cursor.low_water, 1000))) {
      if (!event.agent_event) out.push_back(event.stamp.seq);
    }
    return out;
  }
  std::int64_t corrupt_events() {
    std::int64_t out = 0;
    for (const auto& event : bench.get(bench->events(0, 1000))) out += event.what == "corrupt" ? 1 : 0;
    return out;
  }
  /// Loads a resource whose row is wrong. Only an error is right.
  static void load(Bench& bench, const std::string& id) {
    if (bench.wait(bench->load(backend_row().uid, {{"config", id}}))) ::_exit(kAccepted);
  }

  /// Opens a sink as a reload does, which reads its deliveries.
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
  EXPECT_EQ(corrupt_events(), 2);
  for (const auto& entry : bench.get(bench->index(backend_row().uid))) {
    EXPECT_EQ(entry.digest, Digest{}) << "the index must say that it is to be judged again: " << entry.id.id;
    EXPECT_FALSE(entry.has_open);
  }
  EXPECT_EQ(bench.get(bench->backends()).front().cursor, "");
  bench.close();
  EXPECT_EQ(store_in_child(data,
                           [](Bench& again) {
                             again.get(again->load(backend_row().uid, {{"config", "first"}, {"config", "drifting"}}));
                           }),
            0)
      << "the row was repaired, so the agent does not end again";
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
    if (bench.wait(bench->owner_of("d-drifting"))) ::_exit(kAccepted);
  });
  EXPECT_EQ(code, kFailStop);
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(corrupt_events(), 1);
}

TEST_F(MendedRowsTest, MarkThatIsTakenBackIsNotSettledOver) {
  const int code = under_the_agent(kWrongMark, [](Bench& bench) {
    if (bench.wait(bench->settle({"ops", 8, {}, {}, {}, {}}))) ::_exit(kAccepted);
  });
  EXPECT_EQ(code, kFailStop);
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(undelivered("ops"), kAll) << "including the one that failed and the dead letter";
  EXPECT_EQ(undelivered("desk"), (Seqs{9, 10}));
}

/// If a delivery is wrong, all sinks get all events again. No settlement of the same moment, of any sink, may be
/// applied after that.
TEST_F(MendedRowsTest, WrongDeliveryTakesAllMarksBackAndNothingOfTheMomentPassesThem) {
  const int code = under_the_agent("UPDATE delivery SET dead = 1", [](Bench& bench) {
    std::vector<Task<Status>> together;
    for (const auto* sink : {"ops", "desk", "desk"}) together.push_back(bench->settle({sink, 9, {}, {}, {}, {}}));
    together.push_back(open(bench, "ops"));
    for (int i = 0; i < 3; ++i) together.push_back(bench->settle({"desk", 10, {}, {}, {}, {}}));
    if (!bench.wait_all(std::move(together)).empty()) ::_exit(kAccepted);
  });
  EXPECT_EQ(code, kFailStop);
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(undelivered("ops"), kAll);
  EXPECT_EQ(undelivered("desk"), kAll);
  for (const auto& totals : bench.get(bench->sink_totals()))
    EXPECT_EQ(totals.emitted, totals.acked + totals.pending + totals.dead + totals.dropped) << totals.sink;
}

/// A restart would not repair it either. So the caller gets an error each time, and the agent goes on with the others.
TEST_F(MendedRowsTest, WhatCannotBeMendedEndsNothing) {
  const int code = under_the_agent(
      "UPDATE backend SET sequence = sequence - 1; UPDATE resource SET version = 'x' WHERE name = 'first'",
      [](Bench& bench) {
        for (int i = 0; i < 3; ++i) {
          const auto rows = bench.wait(bench->load(backend_row().uid, {{"config", "first"}}));
          if (rows || rows.error().code != Code::corrupt) ::_exit(kAccepted);
        }
        bench.get(bench->settle({"desk", 10, {}, {}, {}, {}}));
      });
  EXPECT_EQ(code, 0);
  const auto opened = bench.open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("backend orders"), HasSubstr("driftd restore")));
}

/// The next start would find nothing to repair, and the agent would end at the same place again and again.
TEST_F(MendedRowsTest, RowThatIsSignedAndCannotBeReadEndsNothing) {
  const int code = under_the_agent("UPDATE sink SET notes = 'x', crc = NULL WHERE name = 'ops'", [](Bench& bench) {
    const auto cursor = bench.wait(bench->open_sink("ops"));
    if (cursor || cursor.error().code != Code::corrupt) ::_exit(kAccepted);
  });
  EXPECT_EQ(code, 0);
}

/// A full disk cannot store the repair. Then nothing of it is kept, and the agent does not end.
TEST_F(MendedRowsTest, MendThatIsNotStoredEndsNothing) {
  const int code = under_the_agent(std::string(kWrongMark) +
                                       "; CREATE TRIGGER no BEFORE UPDATE ON meta WHEN new.key = 'commits' "
                                       "BEGIN SELECT RAISE(ABORT, 'full'); END",
                                   [&](Bench& bench) {
                                     if (bench.wait(bench->settle({"ops", 8, {}, {}, {}, {}}))) ::_exit(kAccepted);
                                     tamper(data + "/store.db", "DROP TRIGGER no");
                                   });
  EXPECT_EQ(code, 0);
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(corrupt_events(), 1) << "reported by this start";
  EXPECT_EQ(undelivered("ops"), kAll);
}

}  // namespace
}  // namespace driftd::test
