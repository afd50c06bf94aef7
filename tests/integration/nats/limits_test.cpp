// SPDX-License-Identifier: Apache-2.0
// Limits of the account, of the server and of a stream that somebody else made or edits. Nothing is lost, nothing that
// can never be stored is tried for ever, and the error says what to do. Against Debian's nats-server and a current one.
#include <gtest/gtest.h>
#include <csignal>
#include <optional>

#include "bus.hpp"
#include "support/nats_cluster.hpp"

namespace driftd::test {
namespace {

class NatsLimits : public testing::TestWithParam<std::string> {
 protected:
  std::string program() const { return GetParam() == "current" ? current_nats().server : "nats-server"; }
};

/// Returns event `n`, about a topic of its own, with so many bytes more.
core::StoredEvent large_event(std::int64_t n, std::size_t more) {
  auto event = event_of_topic(n, n);
  event.payload.append(more, 'x');
  return event;
}

testing::AssertionResult says(RelayRunner& runner, const std::string& part) {
  core::SinkView view;
  const auto found = [&] {
    view = runner.view();
    return (view.last_error + "; " + view.state).find(part) != std::string::npos;
  };
  if (eventually(found, std::chrono::seconds(40))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected '" << part << "' in '" << view.last_error << "', '" << view.state
                                     << "'";
}

bool dead(RelayRunner& runner, std::int64_t count) {
  return eventually([&] { return runner.view().dead == count; }, std::chrono::seconds(60));
}

TEST_P(NatsLimits, AnEventAboveMaxPayloadIsADeadLetterThatNamesSizeLimitAndWayOut) {
  NatsServer server("max_payload: 4096\n", program());
  RelayRunner runner(nats_sink(at(server)));
  runner.add(large_event(1, 0));
  runner.add(large_event(2, 8'000));
  runner.add(large_event(3, 0));
  ASSERT_TRUE(dead(runner, 1)) << runner.view().last_error;
  EXPECT_TRUE(says(runner, " bytes with its headers, and the server takes 4096: raise its max_payload"));
  EXPECT_TRUE(says(runner, "driftd deadletter replay"));
  EXPECT_TRUE(delivered(runner, 2)) << runner.view().last_error;
  EXPECT_EQ(missing(server, 3, true), std::vector<std::int64_t>{2});
  server.stop();
  server.configure("max_payload: 65536\n");
  server.start();
  runner.dead_letters("replay");
  EXPECT_TRUE(all_there(server, runner, 3, true));
}

TEST_P(NatsLimits, AnEventAboveMaxMsgSizeOfTheStreamIsADeadLetterUntilItIsRaised) {
  NatsServer server("", program());
  change_stream(server.url(), "CREATE", {.max_msg_size = 4'096});
  RelayRunner runner(nats_sink(without_views(at(server))));
  runner.add(large_event(1, 8'000));
  add(runner, 2, 11);
  ASSERT_TRUE(dead(runner, 1)) << runner.view().last_error;
  EXPECT_TRUE(says(runner, " bytes with its headers, and stream DRIFT takes 4096"));
  EXPECT_TRUE(says(runner, "raise max_msg_size of the stream, then `driftd deadletter replay`"));
  EXPECT_TRUE(delivered(runner, 10)) << runner.view().last_error;
  change_stream(server.url(), "UPDATE", {});
  runner.dead_letters("replay");
  EXPECT_TRUE(all_there(server, runner, 11));
}

/// A server in operator mode, and a user whose JWT allows 4,096 bytes a message.
struct LimitedUser {
  explicit LimitedUser(const std::string& program) {
    const Output made = run({current_nats().credentials, dir.path().string()}, {}, std::chrono::seconds(30));
    if (made.code != 0) throw std::runtime_error(made.err);
    server.emplace(read_file(dir.file("operator.conf")), program);
  }
  sinks::NatsSettings settings(bool jetstream) const {
    auto out = without_views(at(*server));
    out.credentials_file = dir.file("limited.creds");
    out.jetstream = jetstream;
    return out;
  }
  TempDir dir;
  std::optional<NatsServer> server;
};

TEST_P(NatsLimits, AnEventAboveALimitOfTheUserIsADeadLetterAndAllOthersArrive) {
  LimitedUser broker(program());
  for (const bool jetstream : {true, false}) {
    RelayRunner runner(nats_sink(broker.settings(jetstream)));
    for (std::int64_t n = 1; n <= 40; ++n) runner.add(large_event(n, n == 7 || n == 9 ? 8'000 : 0));
    ASSERT_TRUE(dead(runner, 2)) << runner.view().last_error << "; " << runner.view().state;
    EXPECT_TRUE(delivered(runner, 38)) << runner.view().last_error << "; " << runner.view().state;
    EXPECT_TRUE(says(runner, "the server takes 4096: raise its max_payload, or `payload` of this user or account"));
  }
}

/// The client still knows the former limit: the server ends the connection, without naming the message.
TEST_P(NatsLimits, AMaximumThatIsLoweredInOperationEndsAtADeadLetterAndAllOthersArrive) {
  const TempDir store;
  const std::string jetstream = "jetstream { store_dir: \"" + store.path().string() + "\" }\n";
  NatsServer server(jetstream + "max_payload: 65536\n", program());
  RelayRunner runner(nats_sink(without_views(at(server))));
  runner.add(large_event(1, 0));
  ASSERT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  server.configure(jetstream + "max_payload: 4096\n");
  server.signal(SIGHUP);
  ASSERT_TRUE(eventually([&] { return max_payload(server.url()) == 4'096; }));
  for (std::int64_t n = 2; n <= 40; ++n) runner.add(large_event(n, n == 7 ? 8'000 : 0));
  ASSERT_TRUE(dead(runner, 1)) << runner.view().last_error << "; " << runner.view().state;
  EXPECT_TRUE(eventually([&] { return missing(server, 40) == std::vector<std::int64_t>{7}; }, std::chrono::seconds(60)))
      << runner.view().last_error << "; " << runner.view().state;
}

TEST_P(NatsLimits, AFullStreamKeepsAllEventsWaitingUntilItHasRoom) {
  NatsServer server("", program());
  ForeignStream stream;
  stream.max_msgs = 10;
  change_stream(server.url(), "CREATE", stream);
  RelayRunner runner(nats_sink(without_views(at(server))), kEachMinute);
  add(runner, 1, 30);
  EXPECT_TRUE(says(runner, "maximum messages exceeded (JetStream error 10077): a limit of the stream is reached"));
  ASSERT_TRUE(delivered(runner, 10)) << runner.view().last_error;
  EXPECT_EQ(runner.view().dead, 0);
  stream.max_msgs = -1;
  change_stream(server.url(), "UPDATE", stream);
  EXPECT_TRUE(all_there(server, runner, 30));
  EXPECT_EQ(runner.view().dead, 0);
}

/// `limits` of the account's JetStream.
std::string account(const std::string& limits) {
  return "accounts: { APP: { jetstream: { " + limits + " }, users: [ { user: app, password: app } ] } }\n";
}
sinks::NatsSettings as_app(const NatsServer& server) {
  auto out = without_views(at(server));
  out.user = out.password = "app";
  return out;
}
std::string app_url(const NatsServer& server) { return "nats://app:app@" + server.address(); }
bool stored_by(const NatsServer& server, std::size_t count) {
  return eventually([&] { return canonical_ids(stream_contents(app_url(server), "DRIFT")).size() == count; },
                    std::chrono::seconds(60));
}

TEST_P(NatsLimits, AnAccountThatMayHaveNoFurtherStreamIsExplainedAndTriedAgain) {
  NatsServer server(account("max_streams: 1, max_file: 100M"), program());
  change_stream(app_url(server), "CREATE", {.name = "OTHERS", .subjects = {"others"}});
  RelayRunner runner(nats_sink(as_app(server)));
  add(runner, 1, 10);
  EXPECT_TRUE(says(runner, "raise the number of streams of the account, or name an existing one in jetstream.stream"));
  change_stream(app_url(server), "DELETE", {.name = "OTHERS"});
  EXPECT_TRUE(stored_by(server, 10)) << runner.view().last_error;
}

TEST_P(NatsLimits, AnAccountThatWantsStreamsWithASizeSaysSoAndTheOneMadeByHandIsUsed) {
  NatsServer server(account("max_file: 100M, max_bytes_required: true"), program());
  RelayRunner runner(nats_sink(as_app(server)));
  add(runner, 1, 10);
  EXPECT_TRUE(says(runner, "this account wants streams with max_bytes: create the stream by hand"));
  change_stream(app_url(server), "CREATE", {.max_bytes = 10'000'000});
  EXPECT_TRUE(stored_by(server, 10)) << runner.view().last_error;
}

TEST_P(NatsLimits, AnAccountWithoutRoomKeepsAllEventsWaitingUntilItHasSome) {
  NatsServer server(account("max_file: 40K"), program());
  RelayRunner runner(nats_sink(as_app(server)), kEachMinute);
  for (std::int64_t n = 1; n <= 60; ++n) runner.add(large_event(n, 1'000));
  EXPECT_TRUE(says(runner, "the JetStream limits of the account"));
  EXPECT_LT(runner.view().delivered, 60);
  EXPECT_EQ(runner.view().dead, 0);
  server.stop();
  server.configure(account("max_file: 100M"));
  server.start();
  EXPECT_TRUE(stored_by(server, 60)) << runner.view().last_error << "; " << runner.view().state;
  EXPECT_EQ(runner.view().dead, 0);
}

TEST_P(NatsLimits, AStreamThatCanTakeNothingIsNamedWithTheReasonAndNothingIsLost) {
  const std::pair<ForeignStream, std::string> streams[] = {
      {{.mirror = "ORIGIN"}, "stream DRIFT is a mirror and takes no messages"},
      {{.no_ack = true}, "stream DRIFT acknowledges nothing (no_ack)"},
      {{.sealed = true}, "stream DRIFT is sealed and takes no messages any more"}};
  for (const auto& [stream, text] : streams) {
    NatsServer server("", program());
    change_stream(server.url(), "CREATE", {.name = "ORIGIN", .subjects = {"origin"}});
    ForeignStream first = stream;
    first.sealed = false;  // a stream is sealed by an update
    change_stream(server.url(), "CREATE", first);
    if (stream.sealed) change_stream(server.url(), "UPDATE", stream);
    RelayRunner runner(nats_sink(without_views(at(server))));
    add(runner, 1, 10);
    EXPECT_TRUE(says(runner, text));
    EXPECT_EQ(runner.view().delivered, 0);
    EXPECT_EQ(runner.view().dead, 0);
    change_stream(server.url(), "DELETE", {});
    EXPECT_TRUE(all_there(server, runner, 10)) << text;
  }
}

TEST_P(NatsLimits, AStreamThatIsSealedInOperationIsNamedAndItsEventsArriveInTheNextOne) {
  NatsServer server("", program());
  RelayRunner runner(nats_sink(without_views(at(server))), kEachMinute);
  add(runner, 1, 10);
  ASSERT_TRUE(delivered(runner, 10)) << runner.view().last_error;
  ForeignStream sealed;
  sealed.sealed = true;
  change_stream(server.url(), "UPDATE", sealed);
  add(runner, 11, 20);
  EXPECT_TRUE(says(runner, "is sealed and takes no messages any more"));
  EXPECT_EQ(runner.view().dead, 0);
  change_stream(server.url(), "DELETE", {});
  EXPECT_TRUE(all_there(server, runner, 20)) << "the new stream has none of the old ones";
}

TEST_P(NatsLimits, AStreamWhoseSubjectsAreTakenAwayInOperationIsNamedAndGetsAllLater) {
  NatsServer server("", program());
  RelayRunner runner(nats_sink(without_views(at(server))), kEachMinute);
  add(runner, 1, 10);
  ASSERT_TRUE(delivered(runner, 10)) << runner.view().last_error;
  change_stream(server.url(), "UPDATE", {.subjects = {"elsewhere"}});
  add(runner, 11, 20);
  EXPECT_TRUE(says(runner, "stream DRIFT takes only elsewhere; add backend.orders-kafka.config.updated"));
  EXPECT_EQ(runner.view().dead, 0);
  change_stream(server.url(), "UPDATE", {});
  EXPECT_TRUE(all_there(server, runner, 20));
}

TEST_P(NatsLimits, AStreamThatKeepsLessThanOneExpectsIsUsedAndSaysSo) {
  const std::pair<ForeignStream, std::string> streams[] = {
      {{.memory = true}, "the stream is in memory"},
      {{.work_queue = true}, "the stream is a work queue"},
      {{.interest = true}, "keeps events only for consumers that exist, and has none"}};
  for (const auto& [stream, text] : streams) {
    NatsServer server("", program());
    change_stream(server.url(), "CREATE", stream);
    RelayRunner runner(nats_sink(without_views(at(server))));
    add(runner, 1, 10);
    EXPECT_TRUE(delivered(runner, 10)) << runner.view().last_error;
    EXPECT_TRUE(says(runner, text));
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, NatsLimits, testing::Values("debian", "current"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace driftd::test
