// SPDX-License-Identifier: Apache-2.0
// Which operations become entries of the change log, and how long they stay.
#include "core/ports/change_log.hpp"

#include <gmock/gmock.h>

#include "support/operations.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using State = core::EnforcementState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ChangeLogOfStore : public testing::Test {
 protected:
  ChangeLogOfStore() {
    bench.settings.logs_changes = [](const std::string& provider) { return provider == "redis"; };
    EXPECT_TRUE(bench.open());
    bench.get(bench->commit(registration()));
  }
  void commit(const core::Enforcement& operation) {
    core::PageCommit page = page_of({}, {});
    page.enforcements.push_back(operation);
    bench.get(bench->commit(std::move(page)));
  }
  core::ChangeLogPosition position() { return bench.get(bench->change_log()->position()); }
  std::vector<core::ChangeEntry> entries(std::int64_t after = 0, int limit = 100) {
    return bench.get(bench->change_log()->after(after, limit, 1 << 20));
  }
  std::vector<std::string> ids() {
    std::vector<std::string> out;
    for (const auto& one : entries()) out.push_back(one.operation.id);
    return out;
  }
  void settle(std::int64_t to) {
    core::ChangeLogSettlement all;
    all.settled = to;
    EXPECT_TRUE(bench.wait(bench->change_log()->settle(std::move(all))));
  }
  std::vector<std::string> gaps() {
    std::vector<std::string> out;
    for (const auto& event : bench.get(bench->last_events(1000))) {
      if (event.what == "gap") out.push_back(event.payload);
    }
    return out;
  }

  TempDir dir;
  Bench bench{dir.file("data")};
};

TEST_F(ChangeLogOfStore, AnOperationIsAnEntryOnceItHasEnded) {
  core::Enforcement one = ended_operation(1);
  one.ended_ns.reset();
  for (const State open : {State::planned, State::applying, State::applied}) {
    one.state = open;
    commit(one);
    EXPECT_THAT(entries(), IsEmpty()) << core::render(open);
  }
  commit(ended_operation(1));
  ASSERT_THAT(ids(), ElementsAre("op-0000000000000001"));
  const auto entry = entries().front();
  EXPECT_EQ(entry.sequence, 1);
  EXPECT_EQ(entry.operation.desired, ended_operation(1).desired);
  EXPECT_EQ(entry.operation.api_version, "redis/v1");
  EXPECT_EQ(entry.operation.changes, ended_operation(1).changes);
  EXPECT_EQ(position().oldest_ns, *ended_operation(1).ended_ns);
}

TEST_F(ChangeLogOfStore, WhatIsWrittenOfItLaterMakesNoSecondEntry) {
  commit(ended_operation(1));
  core::Enforcement forgiven = ended_operation(1);
  forgiven.forgiven = true;
  commit(forgiven);
  EXPECT_EQ(position().newest, 1);
}

TEST_F(ChangeLogOfStore, OnlyOperationsThatTheProviderWasAskedForAndOfProvidersThatHaveAChangeLog) {
  core::Enforcement refused = ended_operation(1);
  refused.state = State::refused;
  refused.attempts = 0;  // the dry run was refused: nothing was asked of the system
  commit(refused);
  core::Enforcement other = ended_operation(2);
  other.provider = "kafka";
  commit(other);
  EXPECT_THAT(entries(), IsEmpty());
  core::Enforcement failed = ended_operation(3);
  failed.state = State::failed;
  commit(failed);
  EXPECT_THAT(ids(), ElementsAre(failed.id));
}

TEST_F(ChangeLogOfStore, ARolledBackPageTakesNoNumber) {
  commit(ended_operation(1));
  core::PageCommit page = page_of({resource_write("a", "{}", 7)}, {});  // no such revision
  page.enforcements.push_back(ended_operation(2));
  EXPECT_FALSE(bench.wait(bench->commit(std::move(page))));
  commit(ended_operation(3));
  EXPECT_THAT(ids(), ElementsAre(ended_operation(1).id, ended_operation(3).id));
  EXPECT_EQ(position().newest, 2);
}

TEST_F(ChangeLogOfStore, TheCursorOnlyGoesForwardAndSurvivesARestart) {
  for (int i = 1; i <= 3; ++i) commit(ended_operation(i));
  settle(2);
  settle(1);
  bench.close();
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(position().settled, 2);
  EXPECT_EQ(position().newest, 3);
  EXPECT_EQ(entries(position().settled).size(), 1u);
}

TEST_F(ChangeLogOfStore, RetentionKeepsAnOperationUntilItsEntryIsSettled) {
  bench.clock.now = 1'770'000'000 * kSecond;
  commit(ended_operation(1));
  commit(ended_operation(2));
  settle(1);
  bench.close();
  bench.settings.audit = std::chrono::seconds(10);
  bench.clock.now += 3'600 * kSecond;
  ASSERT_TRUE(bench.open());
  (void)bench.get(bench->prune(0, 0));
  core::EnforcementFilter all;
  EXPECT_EQ(bench.get(bench->enforcements(all)).size(), 1u) << "the one that was sent has left the store";
  EXPECT_THAT(ids(), ElementsAre(ended_operation(2).id));
  settle(2);
  (void)bench.get(bench->prune(0, 0));
  EXPECT_THAT(bench.get(bench->enforcements(all)), IsEmpty());
}

TEST_F(ChangeLogOfStore, AboveTheLimitTheOldestAreGivenUpAndAnEventSaysSo) {
  (void)bench.get(bench->open_sink("ops"));
  for (int i = 1; i <= 10; ++i) commit(ended_operation(i, 10'000));
  EXPECT_EQ(bench.get(bench->change_log()->limit(1 << 20)), 0);
  EXPECT_EQ(bench.get(bench->change_log()->limit(100'000)), 6);  // each takes a little more than 21,000 bytes
  EXPECT_EQ(position().settled, 6);
  EXPECT_EQ(position().dropped, 6);
  ASSERT_EQ(gaps().size(), 1u);
  EXPECT_THAT(gaps().front(), HasSubstr("the change log lacks 6 entries (1 to 6)"));
  EXPECT_EQ(bench.get(bench->change_log()->limit(100'000)), 0);
}

TEST_F(ChangeLogOfStore, ARefusedEntryIsCountedAndAnEventNamesIt) {
  (void)bench.get(bench->open_sink("ops"));
  commit(ended_operation(1));
  core::ChangeLogSettlement all;
  all.settled = 1;
  all.refused.push_back({1, ended_operation(1).id, "it has 9 bytes, at most 8"});
  EXPECT_TRUE(bench.wait(bench->change_log()->settle(std::move(all))));
  EXPECT_EQ(position().refused, 1);
  ASSERT_EQ(gaps().size(), 1u);
  EXPECT_THAT(gaps().front(), HasSubstr("op-0000000000000001): the receiver refuses it: it has 9 bytes, at most 8"));
}

/// A damaged column must not stop the entries behind it.
TEST_F(ChangeLogOfStore, ADamagedRowIsSentWithWhatIsWholeOfIt) {
  commit(ended_operation(1));
  bench.close();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(dir.file("data/store.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "UPDATE operation SET changes = 'x', state = 'odd'", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  ASSERT_TRUE(bench.open());
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(entries().front().operation.id, ended_operation(1).id);
  EXPECT_NE(entries().front().damage, "");
}

}  // namespace
}  // namespace driftd::test
