// SPDX-License-Identifier: Apache-2.0
// Brokers that lose messages that they had acknowledged (a power failure, a restored volume) while the agent goes on
// publishing.
#include <gtest/gtest.h>
#include <random>
#include <sstream>

#include "bus.hpp"

namespace driftd::test {
namespace {

/// Copies what the server stores now. The server runs again when this returns.
void copy_store(NatsServer& server) {
  server.stop();
  server.keep();
  server.start();
}

/// Kills the server and starts it with the copy, as after a power failure.
void restart_from_copy(NatsServer& server) {
  server.sigkill();
  server.put_back();
  server.start();
}

/// Waits until the agent has noticed that the broker is gone, starts the broker, and waits until the agent is connected
/// again. Returns false if one of the two takes too long.
bool start_when_noticed(NatsServer& server, RelayRunner& runner) {
  const auto state_is = [&runner](const char* start) { return runner.view().state.rfind(start, 0) == 0; };
  const bool gone = eventually([&] { return !state_is("connected"); });
  server.start();
  return gone && eventually([&] { return state_is("connected"); });
}

/// The parameter is how many events are published as soon as the broker is back.
class NatsLoss : public testing::TestWithParam<int> {};

TEST_P(NatsLoss, TheLastEventsThatTheBrokerLostComeAgainThoughNewOnesFollowAtOnce) {
  NatsServer server;
  RelayRunner runner(nats_sink(without_views(at(server))), kEachMinute);
  add(runner, 1, 51);
  ASSERT_TRUE(delivered(runner, 51)) << runner.view().last_error;
  copy_store(server);
  add(runner, 52, 61);
  ASSERT_TRUE(delivered(runner, 61)) << runner.view().last_error;
  server.sigkill();
  server.put_back();
  ASSERT_TRUE(start_when_noticed(server, runner));
  add(runner, 62, 61 + GetParam());
  EXPECT_TRUE(all_there(server, runner, 61 + GetParam()));
}
INSTANTIATE_TEST_SUITE_P(NewEvents, NatsLoss, testing::Values(1, 5, 10, 20));

TEST(NatsLossTest, ABrokerThatWasAwayForSecondsHidesItsLossNoBetter) {
  NatsServer server;
  RelayRunner runner(nats_sink(without_views(at(server))), kEachMinute);
  add(runner, 1, 51);
  ASSERT_TRUE(delivered(runner, 51));
  copy_store(server);
  add(runner, 52, 61);
  ASSERT_TRUE(delivered(runner, 61));
  server.sigkill();
  server.put_back();
  add(runner, 62, 81);
  ASSERT_TRUE(eventually([&] { return runner.view().state.rfind("circuit open", 0) == 0; }));
  server.start();
  EXPECT_TRUE(all_there(server, runner, 81));
}

TEST(NatsLossTest, AnOlderCopyOfTheStoreUnderNewTrafficLosesNothing) {
  NatsServer server;
  RelayRunner runner(nats_sink(at(server)), kEachMinute);
  add(runner, 1, 800);
  ASSERT_TRUE(delivered(runner, 800)) << runner.view().last_error;
  copy_store(server);
  add(runner, 801, 1'200);
  ASSERT_TRUE(delivered(runner, 1'200)) << runner.view().last_error;
  server.sigkill();
  server.put_back();
  ASSERT_TRUE(start_when_noticed(server, runner));
  add(runner, 1'201, 2'000);  // more than were lost, so that a new message takes each lost sequence number
  EXPECT_TRUE(all_there(server, runner, 2'000, true));
}

TEST(NatsLossTest, ALossIsFoundWhenTheBrokerReturnsThoughNothingNewIsPublished) {
  NatsServer server;
  RelayRunner runner(nats_sink(without_views(at(server))), kEachMinute);
  add(runner, 1, 200);
  ASSERT_TRUE(delivered(runner, 200)) << runner.view().last_error;
  server.sigkill();
  server.wipe();
  server.start();
  EXPECT_TRUE(all_there(server, runner, 200)) << "only the check each minute would find it";
}

TEST(NatsLossTest, AStreamThatIsMadeAnewUnderALivingConnectionGetsEverythingAgain) {
  NatsServer server;
  RelayRunner runner(nats_sink(without_views(at(server))), kEachMinute);
  add(runner, 1, 300);
  ASSERT_TRUE(delivered(runner, 300)) << runner.view().last_error;
  change_stream(server.url(), "DELETE", {});
  change_stream(server.url(), "CREATE", {});
  runner.add(sample_stored(301));
  EXPECT_TRUE(all_there(server, runner, 301));
}

TEST(NatsLossTest, AfterALossThatHappenedWhileTheAgentWasDownItsNextStartSendsAgain) {
  NatsServer server;
  const auto settings = without_views(at(server));
  MemoryOutbox outbox_of_first_run;
  {
    RelayRunner runner(nats_sink(settings), kEachMinute);
    add(runner, 1, 100);
    ASSERT_TRUE(delivered(runner, 100));
    copy_store(server);
    add(runner, 101, 200);
    ASSERT_TRUE(delivered(runner, 200));
    ASSERT_TRUE(
        eventually([&] { return runner.on_core([&] { return runner.outbox.cursors["s"].low_water == 200; }); }));
    runner.on_core([&] {
      outbox_of_first_run = runner.outbox;
      return 0;
    });
  }
  restart_from_copy(server);
  RelayRunner runner(nats_sink(settings), kEachMinute, outbox_of_first_run);
  EXPECT_TRUE(all_there(server, runner, 200));
}

/// Adds a backlog with many events of each resource: one event of a resource is in flight, the others wait behind it.
void add_backlog(RelayRunner& runner, int count, int topics, std::minstd_rand& random) {
  for (int n = 1; n <= count; ++n) runner.add(event_of_topic(n, static_cast<std::int64_t>(random() % topics)));
}

TEST(NatsLossTest, ABacklogOfFewResourcesIsWholeAfterTheBrokerFellBackToACopyTakenMeanwhile) {
  std::minstd_rand random(20261122);
  for (const int copied_at : {70, 330, 610}) {
    NatsServer server;
    RelayRunner runner(nats_sink(at(server)), kEachMinute);
    server.stop();
    add_backlog(runner, 750, 150, random);
    server.start();
    ASSERT_TRUE(delivered(runner, copied_at)) << runner.view().last_error;
    copy_store(server);
    ASSERT_TRUE(delivered(runner, 750)) << runner.view().last_error;
    restart_from_copy(server);
    runner.add(sample_stored(751));
    EXPECT_TRUE(all_there(server, runner, 751, true)) << "copied at " << copied_at;
  }
}

/// A mark as the sink keeps it (sinks/common/marks.hpp): every event up to number `safe` is in the stream, at
/// `stream_seq` or below.
struct Mark {
  std::size_t stream_seq;
  std::int64_t safe;
  friend auto operator<=>(const Mark&, const Mark&) = default;
};

/// Parses the cursor's note, whose words are `<stream_seq>:<safe>`.
std::set<Mark> parse_marks(const std::string& note) {
  std::set<Mark> out;
  std::istringstream in(note);
  for (std::string word; in >> word;) {
    const auto colon = word.find(':');
    out.insert({std::stoull(word), std::stoll(word.substr(colon + 1))});
  }
  return out;
}

TEST(NatsLossTest, AMarkPromisesNoEventThatIsNotInTheStreamBelowIt) {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    std::minstd_rand random(seed);
    NatsServer server;
    RelayRunner runner(nats_sink(at(server)), kEachMinute);
    server.stop();
    constexpr int kEvents = 900;
    add_backlog(runner, kEvents, 30 + static_cast<int>(random() % 200), random);
    server.start();
    std::set<Mark> marks;
    const auto done = [&] {
      marks.merge(parse_marks(runner.on_core([&] { return runner.outbox.cursors["s"].notes["marks"]; })));
      return runner.view().delivered >= kEvents;
    };
    ASSERT_TRUE(eventually(done, std::chrono::seconds(40))) << runner.view().last_error;
    std::map<std::string, std::size_t> last;  // event id → sequence number of the last of its messages
    std::size_t sequence = 0;
    for (const auto& message : stream_contents(server.url(), "DRIFT")) last[message.ce_id] = ++sequence;
    ASSERT_GT(marks.size(), 3U);
    for (const auto& mark : marks) {
      for (std::int64_t n = 1; n <= mark.safe; ++n) {
        ASSERT_LE(last[sample_stored(n).stamp.id], mark.stream_seq)
            << "seed " << seed << ": the mark says that event " << n << " is at or below message " << mark.stream_seq;
      }
    }
  }
}

}  // namespace
}  // namespace driftd::test
