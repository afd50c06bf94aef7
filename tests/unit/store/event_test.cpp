// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <set>

#include "proto/codec.hpp"
#include "store/events.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class EventTest : public StoreTest {
 protected:
  std::vector<core::StoredEvent> commit(std::vector<core::EventDraft> drafts) {
    return bench.get(bench->commit(page_of({}, std::move(drafts)))).events;
  }
  std::string clock_of(const core::StoredEvent& event) { return event.stamp.id.substr(21); }
};

TEST_F(EventTest, IdIsResourceHashAndHybridClock) {
  const auto events = commit({event_draft("a"), event_draft("a"), event_draft("b")});
  EXPECT_THAT(events[0].stamp.id, MatchesRegex("[a-z2-7]{20}-[0-9a-f]{16}"));
  EXPECT_EQ(events[0].stamp.id.substr(0, 20), events[1].stamp.id.substr(0, 20));
  EXPECT_NE(events[0].stamp.id.substr(0, 20), events[2].stamp.id.substr(0, 20));
  EXPECT_LT(clock_of(events[0]), clock_of(events[1]));
  EXPECT_EQ(std::stoull(clock_of(events[0]), nullptr, 16) >> 12, static_cast<std::uint64_t>(kNoon / 1'000'000));
}

TEST_F(EventTest, HashOfTheIdIsOfBackendKindAndName) {
  const auto other = backend_row("b000000000000002", "billing");
  bench.get(bench->commit(registration(other)));
  auto other_kind = event_draft("a");
  std::get<core::BackendEvent>(other_kind.event).resource->kind = "topic";
  std::set<std::string> hashes;
  for (const auto& event : commit({event_draft("a"), event_draft("b"), event_draft("a", {"ops"}, other), other_kind}))
    hashes.insert(event.stamp.id.substr(0, 20));
  EXPECT_EQ(hashes.size(), 4U);
}

TEST_F(EventTest, ResourceHashIsBase32OfSha256) {
  // printf x | sha256sum | xxd -r -p | base32 | tr A-Z a-z | cut -c1-20
  EXPECT_EQ(store::resource_hash("x"), "fvyrmqvxe2yeialcpsu7");
}

TEST_F(EventTest, HybridClockNeverGoesBack) {
  const auto first = commit({event_draft("a")}).front();
  bench.clock.now -= 3600 * kSecond;
  const auto second = commit({event_draft("a")}).front();
  restart();
  const auto third = commit({event_draft("a")}).front();
  bench.clock.now += 7200 * kSecond;
  const auto fourth = commit({event_draft("a")}).front();
  EXPECT_LT(clock_of(first), clock_of(second));
  EXPECT_LT(clock_of(second), clock_of(third));
  EXPECT_LT(clock_of(third), clock_of(fourth));
}

TEST_F(EventTest, SequencePerBackendHasNoGapsDespiteFailedPages) {
  const auto other = backend_row("b000000000000002", "billing");
  bench.get(bench->commit(registration(other)));
  std::vector<Task<Result<core::CommitResult>>> tasks;
  for (int i = 0; i < 30; ++i) {
    auto page = page_of({}, {event_draft("a"), event_draft("b", {"ops"}, other)});
    if (i % 3 == 1) page.writes = {resource_write("never", "{}", 99)};                                    // conflicts
    if (i % 3 == 2) page.events.push_back(event_draft("c", {"ops"}, backend_row("unknown", "unknown")));  // fails last
    tasks.push_back(bench->commit(std::move(page)));
  }
  bench.wait_all(std::move(tasks));
  std::map<std::string, std::uint64_t> last;
  for (const auto& event : bench.get(bench->events(0, 1000))) {
    EXPECT_EQ(event.stamp.sequence, ++last[event.backend]);
  }
  EXPECT_EQ(last, (std::map<std::string, std::uint64_t>{{"orders", 10}, {"billing", 10}}));
  restart();
  EXPECT_EQ(commit({event_draft("a")}).front().stamp.sequence, 11U);
  EXPECT_EQ(bench.get(bench->backends()).front().sequence, 11U);
}

TEST_F(EventTest, EventsOfOnePageAreNumberedByTheirBackendAndCountedForTheirSinks) {
  const auto other = backend_row("b000000000000002", "billing");
  bench.get(bench->commit(registration(other)));
  const std::vector<std::string> both = {"ops", "audit"};
  bench.get(bench->commit(page_of({}, {event_draft("a")})));
  core::AgentEvent gap;
  gap.agent = "driftd";
  gap.what = "gap";
  const auto page = page_of({}, {event_draft("b", both),
                                 event_draft("c", {}, other),
                                 event_draft("b", both),
                                 {gap, {}},
                                 event_draft("c", {"ops"}, other),
                                 event_draft("d")});
  std::vector<std::uint64_t> sequences;
  std::int64_t last = 0;
  for (const auto& event : bench.get(bench->commit(page)).events) {
    sequences.push_back(event.stamp.sequence);
    EXPECT_GT(event.stamp.seq, last);
    last = event.stamp.seq;
  }
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{2, 1, 3, 1, 2, 4}));
  EXPECT_EQ(bench.get(bench->commit(page_of({}, {event_draft("e")}))).events.front().stamp.sequence, 5U);
  EXPECT_EQ(book("ops").emitted, 6);
  EXPECT_EQ(book("audit").emitted, 2);
  restart();
  EXPECT_EQ(book("ops").emitted, 6) << "the rows that were counted have their checksums";
}

TEST_F(EventTest, StoredEventComesBackExactly) {
  const auto made = commit({event_draft("a")}).front();
  restart();
  const auto read = bench.get(bench->last_events(1)).front();
  EXPECT_EQ(
      std::tie(read.stamp.id, read.stamp.seq, read.stamp.sequence, read.stamp.recorded_ns, read.agent_event, read.key),
      std::tie(made.stamp.id, made.stamp.seq, made.stamp.sequence, made.stamp.recorded_ns, made.agent_event, made.key));
  EXPECT_EQ(
      std::tie(read.backend, read.backend_type, read.source, read.what, read.cluster, read.provider, read.resource),
      std::tie(made.backend, made.backend_type, made.source, made.what, made.cluster, made.provider, made.resource));
  EXPECT_EQ(read.type, made.type);
  EXPECT_EQ(read.payload, made.payload);
  EXPECT_THAT(proto::to_json(read).value(), HasSubstr(made.stamp.id));
}

TEST_F(EventTest, AgentEventHasItsOwnSequence) {
  core::AgentEvent parked;
  parked.agent = "agent-1";
  parked.what = "parked";
  EXPECT_EQ(bench.get(bench->append({parked, {"ops"}})).stamp.sequence, 1U);
  const auto second = bench.get(bench->append({parked, {"ops"}}));
  EXPECT_EQ(second.stamp.sequence, 2U);
  EXPECT_TRUE(second.agent_event);
  EXPECT_EQ(second.key, "agent/agent-1");
}

TEST_F(EventTest, LastEventsAreOldestFirst) {
  commit({event_draft("a"), event_draft("b"), event_draft("c")});
  const auto last = bench.get(bench->last_events(2));
  ASSERT_EQ(last.size(), 2U);
  EXPECT_EQ(last[0].resource, "config/b");
  EXPECT_EQ(last[1].resource, "config/c");
}

class CorruptEventTest : public EventTest {
 protected:
  void SetUp() override {
    EventTest::SetUp();
    bench.get(bench->open_sink("ops"));
    seqs = emit(3);
  }
  void break_row(std::int64_t seq, const std::string& change = "payload = CAST(x'00' || payload AS BLOB)") {
    tamper(file(), "UPDATE event SET " + change + " WHERE seq = " + std::to_string(seq));
  }
  std::vector<std::int64_t> fetched() {
    std::vector<std::int64_t> out;
    for (const auto& event : bench.get(bench->fetch("ops", 0, 100))) out.push_back(event.stamp.seq);
    return out;
  }
  std::vector<std::int64_t> seqs;
};

TEST_F(CorruptEventTest, BadRowIsSkippedAndToldOnce) {
  break_row(seqs[1]);
  EXPECT_EQ(fetched(), (std::vector<std::int64_t>{seqs[0], seqs[2]}));
  const auto after = bench.get(bench->fetch("ops", seqs[2], 100));
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].what, "corrupt");
  EXPECT_TRUE(after[0].agent_event);
  EXPECT_THAT(proto::to_json(after[0]).value(), HasSubstr("\"seq\":\"" + std::to_string(seqs[1]) + "\""));
  restart();
  EXPECT_EQ(fetched(), (std::vector<std::int64_t>{seqs[0], seqs[2], after[0].stamp.seq}));
}

TEST_F(CorruptEventTest, EachColumnIsUnderTheChecksum) {
  for (const char* change :
       {"id = 'x' || id", "sequence = sequence + 1", "recorded_ns = 0", "agent_event = 1", "key = key || 'x'",
        "backend = ''", "backend_type = 'x'", "source = 'x'", "what = 'x'", "cluster = 'x'", "provider = 'x'",
        "resource = 'x'", "type = 1", "crc = crc + 1", "payload = x''"}) {
    const auto seq = emit(1).front();
    break_row(seq, change);
    for (const auto& event : bench.get(bench->events(0, 1000))) EXPECT_NE(event.stamp.seq, seq) << change;
  }
}

TEST_F(CorruptEventTest, ReaderAndExactFetchQuarantineToo) {
  break_row(seqs[0]);
  break_row(seqs[1]);
  EXPECT_EQ(bench.get(bench->fetch_exact("ops", {seqs[0], seqs[2]})).size(), 1U);
  EXPECT_EQ(bench.get(bench->last_events(2)).size(), 2U);
  bench.get(bench->events(0, 100));
  int told = 0;
  for (const auto& event : bench.get(bench->events(0, 100))) told += event.what == "corrupt" ? 1 : 0;
  EXPECT_EQ(told, 2);
}

TEST_F(CorruptEventTest, BooksCountTheRowAsDropped) {
  break_row(seqs[1]);
  fetched();
  const auto read = book("ops");
  EXPECT_EQ(read.dropped, 1);
  EXPECT_EQ(read.pending, 3);  // two events, and the event that reports the third
  EXPECT_EQ(read.emitted, read.acked + read.pending + read.dead + read.dropped);
}

// Found by an attack: a page of events that the disk had lost was skipped, and the books were exact.
TEST_F(CorruptEventTest, AMissingRowIsToldOnceAndCountedAsDropped) {
  tamper(file(), "DELETE FROM event WHERE seq IN (" + std::to_string(seqs[0]) + ", " + std::to_string(seqs[1]) + ")");
  EXPECT_EQ(fetched(), std::vector<std::int64_t>{seqs[2]});
  EXPECT_EQ(bench.get(bench->fetch_exact("ops", {seqs[0], seqs[2]})).size(), 1U);
  const auto after = bench.get(bench->fetch("ops", seqs[2], 100));
  ASSERT_EQ(after.size(), 2U) << "one for each, told once";
  EXPECT_EQ(after[0].what, "corrupt");
  EXPECT_THAT(proto::to_json(after[0]).value(),
              HasSubstr("event row " + std::to_string(seqs[0]) +
                        " of the store is missing, although it was not delivered to ops"));
  const auto read = book("ops");
  EXPECT_EQ(read.dropped, 2);
  EXPECT_EQ(read.emitted, read.acked + read.pending + read.dead + read.dropped);
}

TEST_F(CorruptEventTest, PageIsFullDespiteABadRow) {
  break_row(seqs[0]);
  EXPECT_EQ(bench.get(bench->fetch("ops", 0, 2)).size(), 2U);
}

}  // namespace
}  // namespace driftd::test
