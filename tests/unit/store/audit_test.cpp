// SPDX-License-Identifier: Apache-2.0
// The audit log: a line is written together with its change or not at all; the lines are a chain that shows what was
// changed or removed; and pruning.
#include <gmock/gmock.h>

#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;

class AuditTest : public StoreTest {
 protected:
  static core::AuditEntry line(int number, Nanos at_ns = kNoon) {
    core::AuditEntry out;
    out.at_ns = at_ns;
    out.actor = "kim";
    out.caller = {1000, 1000, 4711, "loginuid:kim"};
    out.verb = "approved";
    out.subject = "d-" + std::to_string(number);
    out.digest = std::string(64, 'a');
    out.changes = R"([{"new":2,"old":1,"path":"a"}])";
    out.reason = "fine";
    return out;
  }
  void write(int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(bench.wait(bench->audit(line(i, kNoon + i))));
  }
  core::AuditProof proof() { return bench.get(bench->verify_audit({})); }
};

TEST_F(AuditTest, KeepsOrderAndEveryFieldAndFollowsRetention) {
  write(3);
  const auto rows = bench.get(bench->audit(2));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].subject, "d-1");
  EXPECT_EQ(rows[1].at_ns, kNoon + 2);
  EXPECT_EQ(rows[1].caller.uid, 1000);
  EXPECT_EQ(rows[1].caller.pid, 4711);
  EXPECT_EQ(rows[1].caller.claimed, "loginuid:kim");
  EXPECT_EQ(rows[1].changes, line(2).changes);
  bench.clock.now += 30 * 86'400 * kSecond + 2;
  EXPECT_FALSE(bench.get(bench->prune(0, 0)));
  EXPECT_EQ(bench.get(bench->audit(10)).size(), 1U);
}

TEST_F(AuditTest, ALineIsWrittenWithThePageItIsAboutOrNeitherIs) {
  auto page = page_of({resource_write("r")});
  page.audit.push_back(line(1));
  bench.get(bench->commit(page));
  EXPECT_EQ(bench.get(bench->audit(10)).size(), 1U);

  auto late = page_of({resource_write("r", R"({"a":2})", 77)});  // another revision is stored, so this is a conflict
  late.audit.push_back(line(2));
  ASSERT_FALSE(bench.wait(bench->commit(late)));
  EXPECT_EQ(bench.get(bench->audit(10)).size(), 1U) << "a decision that was not applied has no line that says it was";
  EXPECT_TRUE(proof().whole) << proof().broken;
}

TEST_F(AuditTest, APageWhoseLineCannotBeWrittenIsNotCommitted) {
  tamper(file(), "CREATE TRIGGER no BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no more lines'); END");
  auto page = page_of({resource_write("r")}, {event_draft("r")});
  page.audit.push_back(line(1));
  const auto done = bench.wait(bench->commit(page));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("no more lines"));
  EXPECT_EQ(bench.get(bench->resources("", "", 10)).size(), 0U);
  EXPECT_EQ(bench.get(bench->events(0, 10)).size(), 0U);
}

TEST_F(AuditTest, TheChainOfUntouchedLinesIsWholeAlsoAfterARestart) {
  EXPECT_TRUE(proof().whole) << "an empty log is whole: " << proof().broken;
  write(5);
  restart();
  write(2);
  const core::AuditProof found = proof();
  EXPECT_TRUE(found.whole) << found.broken;
  EXPECT_EQ(found.lines, 7);
  EXPECT_EQ(found.head_hash, bench.get(bench->audit(1)).front().hash);
}

TEST_F(AuditTest, EveryFieldOfEveryLineIsUnderTheHash) {
  write(3);
  for (const char* change :
       {"at_ns = at_ns + 1", "actor = 'root'", "verb = 'rejected'", "outcome = 'x'", "subject = 'd-9'", "uid = 0",
        "gid = 0", "pid = 1", "claimed = ''", "backend = 'b'", "resource = 'r'", "digest = 'd'", "changes = ''",
        "reason = 'because'", "expires_ns = 5", "hash = 'h'"}) {
    tamper(file(),
           "CREATE TABLE kept AS SELECT * FROM audit; UPDATE audit SET " + std::string(change) + " WHERE id = 2");
    const core::AuditProof found = proof();
    EXPECT_FALSE(found.whole) << change;
    EXPECT_THAT(found.broken, HasSubstr("line 2 was changed")) << change;
    tamper(file(), "DELETE FROM audit; INSERT INTO audit SELECT * FROM kept; DROP TABLE kept");
    ASSERT_TRUE(proof().whole) << proof().broken;
  }
}

TEST_F(AuditTest, MissingLinesAreMissedWhereverTheyStood) {
  const std::pair<const char*, const char*> cases[] = {
      {"DELETE FROM audit WHERE id = 1", "lines 1 to 1 are missing"},
      {"DELETE FROM audit WHERE id IN (2, 3)", "lines 2 to 3 are missing"},
      {"DELETE FROM audit WHERE id = 5", "lines behind number 4 are missing"},
      {"DELETE FROM audit", "lines behind number 0 are missing"},
      {"UPDATE audit_chain SET id = 3, hash = (SELECT hash FROM audit WHERE id = 3) WHERE position = 'anchor'",
       "stand in front of the anchor"},
  };
  write(5);
  for (const auto& [sql, expected] : cases) {
    tamper(file(), "CREATE TABLE kept AS SELECT * FROM audit; CREATE TABLE chain AS SELECT * FROM audit_chain");
    tamper(file(), sql);
    EXPECT_FALSE(proof().whole) << sql;
    EXPECT_THAT(proof().broken, HasSubstr(expected)) << sql;
    tamper(file(),
           "DELETE FROM audit; INSERT INTO audit SELECT * FROM kept; DROP TABLE kept; "
           "DELETE FROM audit_chain; INSERT INTO audit_chain SELECT * FROM chain; DROP TABLE chain");
    ASSERT_TRUE(proof().whole) << proof().broken;
  }
}

TEST_F(AuditTest, PruningLeavesAChainThatBeginsAtItsAnchor) {
  write(5);
  const auto before = bench.get(bench->audit(10));
  bench.clock.now += 30 * 86'400 * kSecond + 3;
  EXPECT_FALSE(bench.get(bench->prune(0, 0)));
  const core::AuditProof found = proof();
  EXPECT_TRUE(found.whole) << found.broken;
  EXPECT_EQ(found.lines, 2);
  EXPECT_EQ(found.anchor_id, 3);
  EXPECT_EQ(found.anchor_hash, before.at(2).hash);
}

/// The clock was a year ahead for a while: its lines do not stop the pruning of lines before and after them.
TEST_F(AuditTest, LinesOfAClockThatWasAheadHoldUpNoRetention) {
  constexpr Nanos kDay = 86'400 * kSecond;
  const auto write_at = [&](Nanos at, int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(bench.wait(bench->audit(line(i, at))));
  };
  for (const int of_that_time : {1, 1'200}) {
    write_at(kNoon, 3);
    write_at(kNoon + 365 * kDay, of_that_time);
    write_at(kNoon + kSecond, 3);
    bench.clock.now = kNoon + 31 * kDay;
    write_at(bench.clock.now, 2);
    write_at(kNoon + 365 * kDay, 2);
    int rounds = 0;
    while (bench.get(bench->prune(0, 0))) ASSERT_LT(++rounds, 4);
    EXPECT_EQ(bench.get(bench->audit(5'000)).size(), 4U) << "what is young, and of the future behind it";
    EXPECT_TRUE(proof().whole) << proof().broken;
    tamper(file(),
           "DELETE FROM audit; UPDATE audit_chain SET id = (SELECT id FROM audit_chain WHERE position = 'head'), "
           "hash = (SELECT hash FROM audit_chain WHERE position = 'head')");
    bench.clock.now = kNoon;
  }
}

/// A line of 1970 after young ones may come from a clock that was not set yet; it does not prove that those are old.
TEST_F(AuditTest, ALineOfAClockThatWasBehindTakesNoYoungOneWithIt) {
  ASSERT_TRUE(bench.wait(bench->audit(line(1, kNoon))));
  ASSERT_TRUE(bench.wait(bench->audit(line(2, kSecond))));
  EXPECT_FALSE(bench.get(bench->prune(0, 0)));
  EXPECT_EQ(bench.get(bench->audit(10)).size(), 2U);
}

TEST_F(AuditTest, AllLinesPrunedAndTheNextOneGoesOn) {
  write(3);
  bench.clock.now += 60 * 86'400 * kSecond;
  EXPECT_FALSE(bench.get(bench->prune(0, 0)));
  ASSERT_TRUE(proof().whole) << proof().broken;
  write(1);
  EXPECT_TRUE(proof().whole) << proof().broken;
  EXPECT_EQ(bench.get(bench->audit(1)).front().id, 4);
}

TEST_F(AuditTest, MoreLinesThanOnePageOfTheWalk) {
  auto page = page_of({});
  for (int i = 0; i < 4'500; ++i) page.audit.push_back(line(i));
  bench.get(bench->commit(page));
  EXPECT_EQ(proof().lines, 4'500);
  EXPECT_TRUE(proof().whole) << proof().broken;
  tamper(file(), "UPDATE audit SET reason = 'x' WHERE id = 4100");
  EXPECT_THAT(proof().broken, HasSubstr("line 4100 was changed"));
}

core::Drift open_drift(const std::string& id) {
  core::Drift drift;
  drift.id = id;
  drift.backend_uid = backend_row().uid;
  drift.resource = {"config", "r"};
  drift.changes = {{"a", core::ChangeClass::config, "1", "2", false}};
  return drift;
}

TEST_F(AuditTest, ADriftIsFoundByABeginningThatOnlyItHas) {
  auto write_two = resource_write("r");
  write_two.next.open = {open_drift("d-0123456789abcdef"), open_drift("d-0123ff6789abcdef")};
  bench.get(bench->commit(page_of({write_two})));
  EXPECT_EQ(bench.get(bench->owner_of("d-0123456789abcdef")).drift_id, "d-0123456789abcdef");
  EXPECT_EQ(bench.get(bench->owner_of("d-01234")).drift_id, "d-0123456789abcdef");
  EXPECT_EQ(bench.get(bench->owner_of("d-0123f")).drift_id, "d-0123ff6789abcdef");
  const auto both = bench.wait(bench->owner_of("d-0123"));
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, Code::conflict);
  EXPECT_THAT(both.error().message, HasSubstr("several open drifts begin with d-0123"));
  for (const char* given : {"d-012", "d-", "", "d-01234x", "d-012345%", "d-9999"}) {
    EXPECT_EQ(bench.wait(bench->owner_of(given)).error().code, Code::not_found) << given;
  }
}

TEST_F(AuditTest, ListsAreCountedUnderTheirFilters) {
  auto write_one = resource_write("r");
  write_one.next.open = {open_drift("d-0123456789abcdef")};
  bench.get(bench->commit(page_of({write_one, resource_write("s")}, {event_draft("r"), event_draft("s")})));
  using Of = core::Reader::Count::Of;
  const auto count = [&](Of of, core::DriftFilter filter = {}, std::int64_t after = 0) {
    return bench.get(bench->count({of, filter, after}));
  };
  core::DriftFilter other;
  other.backend = "x*";
  core::DriftFilter id;
  id.id = "r";
  EXPECT_EQ(count(Of::resources), 2);
  EXPECT_EQ(count(Of::resources, id), 1);
  EXPECT_EQ(count(Of::resources, other), 0);
  EXPECT_EQ(count(Of::drifts), 1);
  EXPECT_EQ(count(Of::drifts, other), 0);
  EXPECT_EQ(count(Of::events), 2);
  EXPECT_EQ(count(Of::events, {}, 1), 1);
  EXPECT_EQ(count(Of::dead_letters), 0);
  EXPECT_EQ(count(Of::audit), 0);
}

}  // namespace
}  // namespace driftd::test
