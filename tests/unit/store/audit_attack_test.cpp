// SPDX-License-Identifier: Apache-2.0
// Lines that somebody put into the audit log, or took out of its check, and anchors under a clock that is set.
#include <gmock/gmock.h>
#include <algorithm>

#include "base/escape.hpp"
#include "core/audit_text.hpp"
#include "store/audit_walk.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;

class AuditAttacked : public StoreTest {
 protected:
  void write(int count) {
    for (int i = 0; i < count; ++i) {
      core::AuditEntry line;
      line.at_ns = kNoon + i;
      line.actor = "kim";
      line.verb = "approved";
      line.subject = "d-" + std::to_string(i);
      ASSERT_TRUE(bench.wait(bench->audit(line)));
    }
  }
  core::AuditProof proof() { return bench.get(bench->verify_audit({})); }
  std::size_t anchors() {
    const auto events = bench.get(bench->last_events(100));
    return static_cast<std::size_t>(
        std::count_if(events.begin(), events.end(), [](const auto& event) { return event.what == "audit_anchor"; }));
  }
};

TEST_F(AuditAttacked, ALineInFrontOfTheFirstOneIsFound) {
  write(3);
  for (const char* id : {"0", "-7"}) {
    tamper(file(), "INSERT INTO audit (id, at_ns, actor, verb, subject, reason) VALUES (" + std::string(id) +
                       ", 1, 'root', 'approved', 'd-9', 'forged')");
    EXPECT_FALSE(proof().whole) << id;
    EXPECT_THAT(proof().broken, HasSubstr("in front of")) << id;
    tamper(file(), "DELETE FROM audit WHERE id < 1");
  }
  EXPECT_TRUE(proof().whole) << proof().broken;
}

/// Lines without a hash are older than the chain, and a chain that begins behind lines with one has deleted them.
TEST_F(AuditAttacked, LinesWhoseHashesWereTakenAwayAreFound) {
  write(5);
  tamper(file(),
         "UPDATE audit_chain SET id = 3, hash = (SELECT hash FROM audit WHERE id = 3) WHERE position = 'anchor';"
         "UPDATE audit SET hash = '', actor = 'bob' WHERE id <= 3");
  EXPECT_FALSE(proof().whole);
  EXPECT_THAT(proof().broken, HasSubstr("3 lines stand in front of the anchor"));
}

TEST_F(AuditAttacked, AnEndThatNobodyGaveIsFound) {
  write(3);
  tamper(file(), "UPDATE audit SET expires_ns = 0 WHERE id = 2");
  EXPECT_FALSE(proof().whole) << "it is shown as a time, and the line had none";
}

/// Who names a thing may give it any bytes. The log keeps what an export can give back, so that both have one hash.
TEST_F(AuditAttacked, AnyBytesAreKeptAsAnExportGivesThemBack) {
  core::AuditEntry line;
  line.at_ns = kNoon;
  line.actor = "k\xff";
  line.caller.claimed = line.verb = line.outcome = line.subject = line.backend = line.digest = line.request = "\xc3(";
  line.resource = std::string("a\0b", 3);
  line.reason = "\xed\xa0\x80 half a character";
  line.changes = "[{\"path\":\"\xfe\"}]";
  ASSERT_TRUE(bench.wait(bench->audit(line)));
  EXPECT_TRUE(proof().whole) << proof().broken;
  const core::AuditRow stored = bench.get(bench->audit(1)).at(0);
  const auto given = core::parse_audit_json(valid_utf8(core::render(core::audit_json(stored))));
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(core::chain_hash("", 1, *given), stored.hash);
  EXPECT_EQ(stored.resource, line.resource);
}

TEST_F(AuditAttacked, AClockThatWasSetBackHoldsUpNoAnchor) {
  write(1);
  bench.clock.wrong = -365 * 86'400 * kSecond;
  bench.clock.now += 301 * kSecond;
  ASSERT_TRUE(bench.wait(bench->announce_audit()));
  EXPECT_EQ(anchors(), 1U);
}

class Silences : public StoreTest {
 protected:
  std::size_t held() { return bench.get(bench->silences(bench.clock.wall())).size(); }
  core::Silence silence() {
    const Nanos now = bench.clock.wall();
    return {"s-1", "ord*", "", "", "", "ann", "maintenance", now, now + 600 * kSecond};
  }
};

TEST_F(Silences, OfAClockThatWasAheadHoldNotForYears) {
  bench.clock.wrong = 3650 * 86'400 * kSecond;
  ASSERT_TRUE(bench.wait(bench->write_silence(silence(), {})));
  EXPECT_EQ(held(), 1U);
  bench.clock.wrong = 0;
  EXPECT_EQ(held(), 0U) << "it was made for ten minutes";
}

TEST_F(Silences, ThatWereEndedStayEndedBehindAClockThatIsSetBack) {
  core::Silence one = silence();
  ASSERT_TRUE(bench.wait(bench->write_silence(one, {})));
  bench.clock.now += 60 * kSecond;
  one.expires_ns = bench.clock.wall();
  ASSERT_TRUE(bench.wait(bench->write_silence(one, {})));
  EXPECT_EQ(held(), 0U);
  bench.clock.wrong = -30 * kSecond;
  EXPECT_EQ(held(), 0U);
}

TEST_F(Silences, HoldThoughTheClockIsCorrectedByALittle) {
  ASSERT_TRUE(bench.wait(bench->write_silence(silence(), {})));
  bench.clock.wrong = -2 * kSecond;
  EXPECT_EQ(held(), 1U);
}

}  // namespace
}  // namespace driftd::test
