// SPDX-License-Identifier: Apache-2.0
// The store is lost, truncated, copied or restored: it reports that, and a consumer that follows docs/sinks.md misses
// nothing.
#include <gmock/gmock.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "proto/codec.hpp"
#include "store/mark.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class IncarnationTest : public StoreTest {
 protected:
  std::string data(const std::string& name = {}) const { return dir.file("data/" + name); }
  /// Copies data_dir as a power failure at this moment, or `cp -a` beside a running agent, would leave it.
  void copy_to(const std::string& name) const { fs::copy(data(), dir.file(name), fs::copy_options::recursive); }
  /// Restores the content of the copied files without replacing the files themselves.
  void put_back(const std::string& copy, const std::string& file) const {
    std::ofstream(data(file), std::ios::binary) << read_file(dir.file(copy + "/" + file));
  }
  std::vector<core::StoredEvent> told() {
    std::vector<core::StoredEvent> out;
    for (auto& event : bench.get(bench->events(0, 1'000'000))) {
      if (event.agent_event && event.what == "incarnation") out.push_back(std::move(event));
    }
    return out;
  }
  std::string text(const core::StoredEvent& event) { return proto::to_json(event).value(); }
  std::uint64_t incarnation() {
    return bench.get(bench->commit(page_of({}, {event_draft("probe")}))).events[0].stamp.incarnation;
  }
};

TEST_F(IncarnationTest, CopyOfStoreAndKeyAfterACleanStopIsTheWholeStore) {
  const auto seqs = emit(150);
  bench.get(bench->sink_totals());  // a read transaction that stays open
  bench.close();
  fs::create_directory(dir.file("cold"));
  for (const char* name : {"store.db", "installation.key"}) fs::copy(data(name), dir.file(std::string("cold/") + name));
  Bench cold(dir.file("cold"));
  ASSERT_TRUE(cold.open());
  EXPECT_EQ(cold.get(cold->events(0, 1000)).size(), seqs.size());
  EXPECT_EQ(cold.get(cold->backends()).size(), 1U);
}

TEST_F(IncarnationTest, CleanStopLeavesNoLog) {
  emit(5);
  bench.close();
  EXPECT_FALSE(fs::exists(data("store.db-wal")));
  EXPECT_FALSE(fs::exists(data("store.db-shm")));
}

TEST_F(IncarnationTest, RestartGoesOnInTheSameOne) {
  const auto before = incarnation();
  EXPECT_EQ(before, static_cast<std::uint64_t>(kNoon / 1'000'000));
  for (int i = 0; i < 3; ++i) restart();
  bench.get(bench->announce());
  EXPECT_EQ(incarnation(), before);
  EXPECT_TRUE(told().empty());
}

TEST_F(IncarnationTest, RestartOfAKilledAgentGoesOnInTheSameOne) {
  const auto before = incarnation();
  copy_to("killed");
  emit(3);
  const std::string behind_by_one = read_file(dir.file("killed/store.mark"));
  bench.close();
  std::ofstream(data("store.mark")) << behind_by_one;  // killed between the commit and its mark
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(incarnation(), before);
}

TEST_F(IncarnationTest, CutLogIsANewOneThatSaysWhatIsLost) {
  bench.get(bench->open_sink("ops"));
  const auto before = incarnation();
  copy_to("running");
  const auto seqs = emit(20);
  const auto reached = bench.clock.now.load();
  copy_to("later");
  bench.close();
  for (const char* name : {"store.db", "store.db-wal"}) put_back("running", name);
  put_back("later", "store.mark");
  bench.clock.now += 60 * kSecond;
  ASSERT_TRUE(bench.open());
  bench.get(bench->announce());
  const auto lines = bench.get(bench->audit(10));
  ASSERT_EQ(lines.size(), 1U) << "what is missing of the log itself is missing in front of this line";
  EXPECT_EQ(lines[0].verb, "store behind");
  EXPECT_THAT(lines[0].reason, HasSubstr("behind what it had committed"));
  const auto events = told();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(text(events[0]), AllOf(HasSubstr("behind what it had committed"), HasSubstr("\"lost_events\":\"20\""),
                                     HasSubstr("reached event " + std::to_string(seqs.back())),
                                     HasSubstr(render_time(reached)), HasSubstr("\"reason\":\"behind\"")));
  EXPECT_GT(events[0].stamp.incarnation, before);
  EXPECT_GT(events[0].stamp.seq, seqs.back()) << "numbers of the outbox are not given twice";
  EXPECT_EQ(bench.get(bench->fetch("ops", 0, 1000)).back().stamp.id, events[0].stamp.id) << "the sinks get it";
  restart();
  bench.get(bench->announce());
  EXPECT_EQ(told().size(), 1U) << "once";
}

TEST_F(IncarnationTest, FlippedBitAnywhereInTheLogIsNeverSilent) {
  emit(10);
  for (int i = 0; i < 20; ++i) emit(1);
  copy_to("running");
  bench.close();
  const auto size = fs::file_size(dir.file("running/store.db-wal"));
  int noticed = 0;
  for (int round = 0; round < 12; ++round) {
    fs::remove(data("store.db-shm"));
    for (const char* name : {"store.db", "store.db-wal", "store.mark"}) put_back("running", name);
    const auto at = static_cast<std::streamoff>(size * static_cast<unsigned>(round) / 12 + 40);
    std::fstream wal(data("store.db-wal"), std::ios::in | std::ios::out | std::ios::binary);
    wal.seekg(at);
    const char flipped = static_cast<char>(wal.get() ^ 0x10);
    wal.seekp(at);
    wal.put(flipped);
    wal.close();
    const auto opened = bench.open();
    if (!opened) {
      ++noticed;
      continue;
    }
    bench.get(bench->announce());
    if (told().empty()) {
      EXPECT_EQ(bench.get(bench->events(0, 1000)).size(), 30U) << "silent loss, bit at " << at;
    } else {
      ++noticed;
    }
    bench.close();
  }
  EXPECT_GT(noticed, 6);
}

TEST_F(IncarnationTest, EventOfABeginningIsToldAlsoWhenTheAgentDiesBeforeItWas) {
  bench.get(bench->open_sink("ops"));
  bench.close();
  fs::remove(data("store.mark"));
  ASSERT_TRUE(bench.open());
  restart();
  bench.get(bench->announce());
  ASSERT_EQ(told().size(), 1U);
  EXPECT_THAT(text(told()[0]), AllOf(HasSubstr("\"reason\":\"unmarked\""), HasSubstr("store.mark")));
}

TEST_F(IncarnationTest, DamagedMarkIsSaidAndReplaced) {
  for (const std::string& bad : {std::string(), std::string("x"), read_file(data("store.mark")).substr(0, 80),
                                 "driftd store mark v1 incarnation 9" + read_file(data("store.mark")).substr(34)}) {
    const auto before = incarnation();
    bench.close();
    std::ofstream(data("store.mark"), std::ios::trunc) << bad;
    ASSERT_TRUE(bench.open()) << bad;
    EXPECT_EQ(incarnation(), before + 1) << bad;
    EXPECT_TRUE(store::read_mark(data("store.mark")));
  }
}

TEST_F(IncarnationTest, CopyOfADataDirIsANewOneAndTheOriginalGoesOn) {
  const auto before = incarnation();
  bench.close();
  copy_to("twin");
  Bench twin(dir.file("twin"));
  ASSERT_TRUE(twin.open());
  ASSERT_TRUE(bench.open());
  twin.get(twin->open_sink("ops"));
  twin.get(twin->announce());
  const auto in_twin = twin.get(twin->commit(page_of({}, {event_draft("same")}))).events[0];
  const auto in_original = bench.get(bench->commit(page_of({}, {event_draft("same")}))).events[0];
  EXPECT_EQ(in_original.stamp.incarnation, before);
  EXPECT_GT(in_twin.stamp.incarnation, before);
  EXPECT_NE(in_twin.stamp.id, in_original.stamp.id);
  const auto last = twin.get(twin->last_events(2));
  EXPECT_THAT(proto::to_json(last[0]).value(),
              AllOf(HasSubstr("\"reason\":\"copied\""), HasSubstr("stop one of them")));
}

TEST_F(IncarnationTest, IdsOfTwoThatShareEveryByteAndMomentDiffer) {
  bench.close();
  copy_to("twin");
  Bench twin(dir.file("twin"));
  ASSERT_TRUE(twin.open());
  ASSERT_TRUE(bench.open());
  std::set<std::string> ids;
  for (Bench* one : {&bench, &twin}) {
    for (const auto& event : one->get((*one)->commit(page_of({}, {event_draft("a"), event_draft("b")}))).events)
      ids.insert(event.stamp.id);
  }
  EXPECT_EQ(ids.size(), 4U);
}

TEST_F(IncarnationTest, RenamedDataDirIsNoCopy) {
  const auto before = incarnation();
  bench.close();
  fs::rename(data(), dir.file("elsewhere"));
  Bench moved(dir.file("elsewhere"));
  ASSERT_TRUE(moved.open());
  EXPECT_EQ(moved.get(moved->commit(page_of({}, {event_draft("a")}))).events[0].stamp.incarnation, before);
}

/// A consumer by docs/sinks.md: it skips known ids, and ignores an event whose (driftincarnation, driftseq) is lower
/// than that of the last one applied to the same resource.
class DocumentedConsumer {
 public:
  void take(const core::StoredEvent& event) {
    const auto json = nlohmann::json::parse(proto::cloudevent_json(event).value());
    if (!ids_.insert(json.at("id")).second) return;
    const std::pair<std::uint64_t, std::uint64_t> order{std::stoull(json.value("driftincarnation", "0")),
                                                        std::stoull(json.at("driftseq").get<std::string>())};
    auto& last = last_[json.at("partitionkey")];
    if (order < last) {
      ++ignored;
      return;
    }
    last = order;
    applied[json.at("partitionkey")] = json.at("id");
  }
  int ignored = 0;
  std::map<std::string, std::string> applied;

 private:
  std::set<std::string> ids_;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> last_;
};

TEST_F(IncarnationTest, ConsumerThatFollowsTheDocsIgnoresNoNewsAfterARestore) {
  DocumentedConsumer consumer;
  emit(10);
  bench.close();
  copy_to("backup");
  ASSERT_TRUE(bench.open());
  for (int i = 0; i < 20; ++i) emit(10);
  for (const auto& event : bench.get(bench->events(0, 1000))) consumer.take(event);
  bench.close();
  put_back("backup", "store.db");  // by hand, as `cp` does
  bench.clock.now += kSecond;
  ASSERT_TRUE(bench.open());
  std::map<std::string, std::string> truth;
  for (int i = 0; i < 14; ++i) {
    for (const auto& event :
         bench.get(bench->commit(page_of({}, {event_draft("r" + std::to_string(i % 10))}))).events) {
      consumer.take(event);
      truth[event.key] = event.stamp.id;
    }
  }
  EXPECT_EQ(consumer.ignored, 0);
  for (const auto& [key, id] : truth) EXPECT_EQ(consumer.applied[key], id) << key;
}

TEST_F(IncarnationTest, ClockThatWentBackBegetsAHigherOneAllTheSame) {
  const auto before = incarnation();
  bench.close();
  fs::remove(data("store.mark"));
  bench.clock.now -= 3600 * kSecond;
  ASSERT_TRUE(bench.open());
  EXPECT_EQ(incarnation(), before + 1);
}

TEST_F(IncarnationTest, StoreOfBeforeIncarnationsBeginsItsFirstWithoutAWord) {
  const auto seqs = emit(3);
  bench.close();
  tamper(file(), "DELETE FROM meta WHERE key IN ('incarnation', 'commits', 'place')");
  fs::remove(data("store.mark"));
  ASSERT_TRUE(bench.open());
  bench.get(bench->announce());
  EXPECT_TRUE(told().empty());
  EXPECT_GT(incarnation(), 0U);
}

using LostStoreTest = IncarnationTest;

TEST_F(LostStoreTest, KeyWithoutItsStoreIsRefusedWithTheWaysOut) {
  emit(3);
  bench.close();
  const std::string whole = read_file(file());
  const std::pair<const char*, std::function<void()>> losses[] = {
      {"not there", [&] { fs::remove(file()); }},
      {"is empty", [&] { std::ofstream(file(), std::ios::trunc); }},
      {"no tables", [&] {
         fs::remove(file());
         tamper(file(), "PRAGMA user_version = 3");
         fs::permissions(file(), fs::perms(0600));
       }}};
  for (const auto& [found, lose] : losses) {
    lose();
    const auto opened = bench.open();
    ASSERT_FALSE(opened) << found;
    EXPECT_EQ(opened.error().code, Code::not_found);
    EXPECT_THAT(opened.error().message,
                AllOf(HasSubstr(found), HasSubstr("the store was lost"), HasSubstr("driftd restore"),
                      HasSubstr("move installation.key and store.mark away")));
    std::ofstream(file(), std::ios::trunc) << whole;
  }
  EXPECT_TRUE(bench.open());
}

TEST_F(LostStoreTest, WayOutThatTheTextNamesBeginsAnew) {
  const auto key = bench->key().worker.id;
  bench.close();
  fs::remove(file());
  for (const char* name : {"installation.key", "store.mark"}) fs::rename(data(name), dir.file(name));
  ASSERT_TRUE(bench.open());
  EXPECT_NE(bench->key().worker.id, key);
  EXPECT_TRUE(bench.get(bench->backends()).empty());
}

TEST_F(LostStoreTest, FirstStartThatWasCutIsDoneAgain) {
  Bench first(dir.file("first"));
  ASSERT_TRUE(first.open());
  const auto key = first->key().worker.id;
  first.close();
  // stopped before the key had its name, with or without a store
  fs::rename(dir.file("first/installation.key"), dir.file("first/installation.key.first"));
  ASSERT_TRUE(first.open());
  EXPECT_EQ(first->key().worker.id, key);
  first.close();
  fs::rename(dir.file("first/installation.key"), dir.file("first/installation.key.first"));
  for (const char* name : {"first/store.db", "first/store.mark"}) fs::remove(dir.file(name));
  ASSERT_TRUE(first.open());
  EXPECT_EQ(first->key().worker.id, key);
  EXPECT_TRUE(fs::exists(dir.file("first/installation.key")));
  EXPECT_FALSE(fs::exists(dir.file("first/installation.key.first")));
}

}  // namespace
}  // namespace driftd::test
