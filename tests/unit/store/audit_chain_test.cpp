// SPDX-License-Identifier: Apache-2.0
// What the audit log proves about itself: tampering, anchors, requests without an end, its size, and the time that a
// check of many lines takes.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <chrono>
#include <cstdlib>

#include "store/audit_walk.hpp"
#include "support/patience.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;

class AuditChainTest : public StoreTest {
 protected:
  static core::AuditEntry line(int number, std::string request = {}, std::string verb = "approved") {
    core::AuditEntry out;
    out.at_ns = kNoon + number;
    out.actor = "kim";
    out.caller = {1000, 1000, 4711, "loginuid:kim"};
    out.verb = std::move(verb);
    out.subject = "d-" + std::to_string(number);
    out.request = std::move(request);
    return out;
  }
  void write(int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(bench.wait(bench->audit(line(i))));
  }
  core::AuditProof proof(std::optional<core::AuditLink> anchor = {}) {
    return bench.get(bench->verify_audit(std::move(anchor)));
  }
  core::AuditProof proof_of_file() {
    auto found = store::verify_audit(file(), {});
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : core::AuditProof{};
  }
  std::vector<core::StoredEvent> anchors() {
    auto events = bench.get(bench->last_events(100));
    std::erase_if(events, [](const auto& event) { return event.what != "audit_anchor"; });
    return events;
  }
};

TEST_F(AuditChainTest, ALineThatMovedOrWasDoubledBreaksTheChain) {
  write(5);
  for (const char* sql :
       {"UPDATE audit SET id = -1 WHERE id = 2; UPDATE audit SET id = 2 WHERE id = 3; UPDATE audit SET id = 3 WHERE id "
        "= -1",
        "DELETE FROM audit WHERE id = 3; INSERT INTO audit SELECT 3, at_ns, actor, verb, subject, reason, outcome, "
        "uid, "
        "gid, pid, claimed, backend, resource, digest, changes, expires_ns, hash, request FROM audit WHERE id = 2",
        "UPDATE audit SET request = 'r-1' WHERE id = 4"}) {
    tamper(file(), "CREATE TABLE kept AS SELECT * FROM audit");
    ASSERT_TRUE(proof_of_file().whole);
    tamper(file(), sql);
    EXPECT_FALSE(proof_of_file().whole) << sql;
    EXPECT_FALSE(proof().whole) << sql;
    tamper(file(), "DELETE FROM audit; INSERT INTO audit SELECT * FROM kept; DROP TABLE kept");
  }
  EXPECT_TRUE(proof().whole);
}

/// Whoever can write the store can move the head, too. Only an anchor that was kept outside shows it.
TEST_F(AuditChainTest, AnAnchorShowsThatTheEndWasCutOffOrWrittenAgain) {
  write(5);
  const auto rows = bench.get(bench->audit(10));
  const core::AuditLink fourth{rows[3].id, rows[3].hash};
  EXPECT_TRUE(proof(fourth).whole);
  tamper(file(),
         "DELETE FROM audit WHERE id > 3; UPDATE audit_chain SET id = 3, hash = (SELECT hash FROM audit WHERE id = 3) "
         "WHERE position = 'head'");
  EXPECT_TRUE(proof().whole) << "the chain alone cannot show it";
  EXPECT_THAT(proof(fourth).broken, HasSubstr("lines at its end were removed"));
  write(2);
  EXPECT_THAT(proof(fourth).broken, HasSubstr("line 4 has another hash than the anchor"));
}

TEST_F(AuditChainTest, AnAnchorOlderThanTheRetentionIsSaidToBeUnchecked) {
  write(5);
  const auto rows = bench.get(bench->audit(10));
  bench.clock.now += 30 * 86'400 * kSecond + 3;
  EXPECT_FALSE(bench.get(bench->prune(0, 0)));
  EXPECT_THAT(proof(core::AuditLink{1, rows[0].hash}).unchecked, HasSubstr("older than the checked lines"));
  EXPECT_TRUE(proof(core::AuditLink{3, rows[2].hash}).whole) << "the last deleted line is known by its hash";
  EXPECT_FALSE(proof(core::AuditLink{3, rows[1].hash}).whole);
}

TEST_F(AuditChainTest, AnchorsAreAnnouncedOnlyForNewLines) {
  ASSERT_TRUE(bench.wait(bench->announce_audit()));
  EXPECT_EQ(anchors().size(), 0U) << "an empty log";
  write(3);
  ASSERT_TRUE(bench.wait(bench->announce_audit()));
  EXPECT_EQ(anchors().size(), 0U) << "the log of the start told the end of the chain";
  bench.clock.now += 301 * kSecond;
  ASSERT_TRUE(bench.wait(bench->announce_audit()));
  ASSERT_EQ(anchors().size(), 1U);
  EXPECT_THAT(anchors()[0].payload, HasSubstr(bench.get(bench->audit(1))[0].hash));
  write(1);
  ASSERT_TRUE(bench.wait(bench->announce_audit()));
  EXPECT_EQ(anchors().size(), 1U) << "one line, and not yet five minutes";
  bench.clock.now += 301 * kSecond;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(bench.wait(bench->announce_audit()));
  EXPECT_EQ(anchors().size(), 2U) << "once, and not again while nothing is written";
  restart();
  ASSERT_TRUE(bench.wait(bench->announce_audit()));
  EXPECT_EQ(anchors().size(), 2U);
}

TEST_F(AuditChainTest, ARequestWhoseEndNoProcessWroteIsSaidToBeUnknownOnce) {
  ASSERT_TRUE(bench.wait(bench->audit(line(1, "r-1", "asked refresh"))));
  ASSERT_TRUE(bench.wait(bench->audit(line(1, "r-1", "refresh"))));
  ASSERT_TRUE(bench.wait(bench->audit(line(2, "r-2", "asked replay"))));
  for (int start = 0; start < 3; ++start) {
    restart();
    ASSERT_TRUE(bench.wait(bench->announce()));
  }
  const auto rows = bench.get(bench->audit(10));
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[3].verb, "replay");
  EXPECT_EQ(rows[3].request, "r-2");
  EXPECT_EQ(rows[3].actor, "driftd");
  EXPECT_THAT(rows[3].outcome, HasSubstr("the agent ended before it knew"));
  EXPECT_EQ(rows[3].reason, "asked in line 3");
  EXPECT_TRUE(proof().whole) << proof().broken;
}

/// A full audit log must not push events out, and the estimate of its size must follow what retention deletes.
TEST_F(AuditChainTest, TheAuditLogIsNotCountedInTheSizeOfTheStore) {
  emit(50);
  const auto before = bench.get(bench->shrink(1 << 30)).bytes;
  auto page = page_of({});
  for (int i = 0; i < 20'000; ++i) {
    page.audit.push_back(line(i));
    page.audit.back().changes = R"([{"new":2,"old":1,"path":")" + std::string(300, 'a') + R"("}])";
  }
  bench.get(bench->commit(page));
  const auto after = bench.get(bench->shrink(1 << 30)).bytes;
  EXPECT_LT(std::abs(after - before), 2 << 20) << "of about 12 MB of audit lines";
  const auto events = bench.get(bench->last_events(1000)).size();
  (void)bench.get(bench->shrink(before + (2 << 20)));
  EXPECT_EQ(bench.get(bench->last_events(1000)).size(), events);
  bench.clock.now += 31 * 86'400 * kSecond;
  while (bench.get(bench->prune(0, 0))) {
  }
  EXPECT_EQ(bench.get(bench->audit(10)).size(), 0U);
  EXPECT_LT(std::abs(bench.get(bench->shrink(1 << 30)).bytes - before), 2 << 20);
}

/// A line exists exactly when its change does, also if any statement of the commit fails: each table in turn refuses.
TEST_F(AuditChainTest, WhateverTableRefusesTheCommitThereIsNeitherChangeNorLine) {
  for (const char* table : {"resource", "event", "audit", "audit_chain", "audit_open"}) {
    const std::string deed = std::string(table) == "audit_chain" ? "UPDATE" : "INSERT";
    tamper(file(), "CREATE TRIGGER no BEFORE " + deed + " ON " + std::string(table) +
                       " BEGIN SELECT RAISE(ABORT, 'refused'); END");
    auto page = page_of({resource_write("r")}, {event_draft("r")});
    page.audit = {line(1), line(2, "r-2", "asked refresh")};
    EXPECT_FALSE(bench.wait(bench->commit(page))) << table;
    EXPECT_EQ(bench.get(bench->resources("", "", 10)).size(), 0U) << table;
    EXPECT_EQ(bench.get(bench->events(0, 10)).size(), 0U) << table;
    EXPECT_EQ(bench.get(bench->audit(10)).size(), 0U) << table;
    EXPECT_TRUE(proof().whole) << table;
    tamper(file(), "DROP TRIGGER no");
  }
  auto page = page_of({resource_write("r")}, {event_draft("r")});
  page.audit = {line(1), line(2, "r-2", "asked refresh")};
  bench.get(bench->commit(page));
  EXPECT_EQ(bench.get(bench->resources("", "", 10)).size(), 1U);
  EXPECT_EQ(bench.get(bench->audit(10)).size(), 2U);
}

/// 10,000,000 lines in at most 60 s is the promise; this checks DRIFTD_AUDIT_LINES of them (default 200,000) in their
/// share of that time.
TEST_F(AuditChainTest, AYearOfLinesIsCheckedInItsTimeAndInBoundedMemory) {
  const char* given = std::getenv("DRIFTD_AUDIT_LINES");
  const std::int64_t lines = given != nullptr ? std::atoll(given) : 200'000;
  for (std::int64_t done = 0; done < lines;) {
    auto page = page_of({});
    for (int i = 0; i < 10'000 && done < lines; ++i, ++done) {
      page.audit.push_back(line(static_cast<int>(done)));
      page.audit.back().digest = std::string(64, 'a');
      page.audit.back().changes = R"([{"new":"67108864","old":"0","path":"config.maxmemory"}])";
    }
    bench.get(bench->commit(page));
  }
  bench.close();
  const auto began = std::chrono::steady_clock::now();
  const core::AuditProof found = proof_of_file();
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  EXPECT_TRUE(found.whole) << found.broken;
  EXPECT_EQ(found.lines, lines);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf("%lld audit lines checked in %.2f s (%.0f a second), at most %ld MiB resident\n",
              static_cast<long long>(lines), took, static_cast<double>(lines) / took, used.ru_maxrss / 1024);
  EXPECT_LT(took, 60.0 * static_cast<double>(lines) / 10e6 * kPatience + 1);
  EXPECT_LT(used.ru_maxrss, 256 * 1024 * kPatience);
  ASSERT_TRUE(bench.open());
}

}  // namespace
}  // namespace driftd::test
