// SPDX-License-Identifier: Apache-2.0
// The account, or a stream that somebody else made, does not allow everything that the sink does. A subject that is
// refused never stops the others, and the error names what is missing.
#include <gtest/gtest.h>
#include <fstream>
#include <sstream>

#include "bus.hpp"

namespace driftd::test {
namespace {

constexpr const char* kDocs = DRIFTD_SOURCE_DIR "/docs/sinks.md";

/// The block of docs/sinks.md that an operator copies.
std::string documented_rights() {
  std::ifstream in(kDocs);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto start = text.find("permissions = {");
  return start == std::string::npos ? "" : text.substr(start, text.find("```", start) - start);
}

/// The rights without one of them, which is replaced by a subject that nobody uses.
std::string without(std::string text, const std::string& right) {
  const auto at = text.find(right);
  if (at == std::string::npos) throw std::runtime_error("docs/sinks.md does not list " + right);
  return text.replace(at, right.size(), "\"nothing\"");
}

/// A server with one JetStream account that has two users: `driftd` has these rights, `root` has all.
struct ServerWithRights {
  explicit ServerWithRights(const std::string& rights)
      : server("accounts: { APP: { jetstream: enabled, users: [\n  { user: driftd, password: s3cret,\n" + rights +
               "  }\n  { user: root, password: root }\n] } }\n") {}
  NatsServer server;
  std::string root() const { return "nats://root:root@" + server.address(); }
  sinks::NatsSettings settings() const {
    auto out = without_views(at(server));
    out.user = "driftd";
    out.password = "s3cret";
    return out;
  }
};

core::StoredEvent agent_event(std::int64_t n) {
  core::AgentEvent event;
  event.agent = "a";
  event.cluster = "default";
  event.what = "parked";
  return proto::to_stored_event(
      event, {"agent0000-" + std::to_string(n), n, static_cast<std::uint64_t>(n), 1'763'700'000'000'000'000});
}

/// The last error, once it contains `part` or 30 s have passed.
std::string last_error_with(RelayRunner& runner, const std::string& part) {
  std::string error;
  eventually([&] { return (error = runner.view().last_error).find(part) != std::string::npos; },
             std::chrono::seconds(30));
  return error;
}

testing::AssertionResult error_says(RelayRunner& runner, const std::string& part) {
  const std::string error = last_error_with(runner, part);
  if (error.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected '" << part << "', the last error is '" << error << "', state '"
                                     << runner.view().state << "'";
}

testing::AssertionResult stored(const std::string& url, std::size_t count) {
  std::size_t there = 0;
  const auto all = [&] { return (there = stream_contents(url, "DRIFT").size()) == count; };
  if (eventually(all, std::chrono::seconds(30))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << there << " of " << count;
}

TEST(NatsRightsTest, TheDocumentedRightsAreEnough) {
  ServerWithRights broker(documented_rights());
  RelayRunner runner(nats_sink(broker.settings()), std::chrono::milliseconds(300));
  add(runner, 1, 20);
  runner.add(agent_event(21));
  ASSERT_TRUE(delivered(runner, 21)) << runner.view().last_error;
  EXPECT_TRUE(stored(broker.root(), 21));
  EXPECT_EQ(runner.view().state, "connected, stream DRIFT");
  EXPECT_EQ(runner.view().last_error, "");
}

TEST(NatsRightsTest, WithoutTheRightToReadAMessageBackDeliveryGoesOnAndSaysWhatCannotBeChecked) {
  ServerWithRights broker(without(documented_rights(), "\"$JS.API.STREAM.MSG.GET.DRIFT\""));
  RelayRunner runner(nats_sink(broker.settings()), std::chrono::milliseconds(300));
  add(runner, 1, 20);
  ASSERT_TRUE(delivered(runner, 20)) << runner.view().last_error;
  EXPECT_TRUE(eventually([&] {
    return runner.view().state.find("may not publish to $JS.API.STREAM.MSG.GET.DRIFT") != std::string::npos;
  })) << runner.view().state;
  add(runner, 21, 40);
  EXPECT_TRUE(delivered(runner, 40)) << runner.view().state << "; " << runner.view().last_error;
}

TEST(NatsRightsTest, ABrokerThatCannotBeReadBackIsStillCaughtByTheSequenceItGives) {
  ServerWithRights broker(without(documented_rights(), "\"$JS.API.STREAM.MSG.GET.DRIFT\""));
  RelayRunner runner(nats_sink(broker.settings()), kEachMinute);
  add(runner, 1, 30);
  ASSERT_TRUE(delivered(runner, 30)) << runner.view().last_error;
  broker.server.stop();
  broker.server.keep();
  broker.server.start();
  add(runner, 31, 40);
  ASSERT_TRUE(delivered(runner, 40)) << runner.view().last_error;
  broker.server.sigkill();
  broker.server.put_back();
  broker.server.start();
  add(runner, 41, 41);
  EXPECT_TRUE(stored(broker.root(), 41));
}

TEST(NatsRightsTest, AMissingRightIsNamed) {
  for (const std::string right : {"$JS.API.STREAM.INFO.DRIFT", "$JS.API.STREAM.CREATE.DRIFT"}) {
    ServerWithRights broker(without(documented_rights(), "\"" + right + "\""));
    RelayRunner runner(nats_sink(broker.settings()));
    add(runner, 1, 1);
    EXPECT_TRUE(error_says(runner, "the account may not publish to " + right));
  }
  ServerWithRights broker(without(documented_rights(), "\"_INBOX.>\""));
  RelayRunner runner(nats_sink(broker.settings()));
  add(runner, 1, 1);
  EXPECT_TRUE(error_says(runner, "the account may not subscribe to _INBOX.>"));
}

TEST(NatsRightsTest, ASubjectThatMayNotBePublishedToIsNamedAndStopsNoOther) {
  ServerWithRights broker(without(documented_rights(), "\"driftd.agent.>\""));
  RelayRunner runner(nats_sink(broker.settings()));
  runner.add(agent_event(1));
  add(runner, 2, 101);
  EXPECT_TRUE(error_says(runner, "driftd.agent.a.parked: the account may not publish to it"));
  EXPECT_TRUE(delivered(runner, 100)) << runner.view().last_error;
  EXPECT_TRUE(stored(broker.root(), 100));
}

TEST(NatsRightsTest, AWrongPasswordWithASignInItAppearsNowhere) {
  ServerWithRights broker(documented_rights());
  auto settings = broker.settings();
  settings.user = settings.password = "";
  settings.servers = {"nats://driftd:canary@canary-tail@" + broker.server.address()};
  RelayRunner runner(nats_sink(settings));
  ASSERT_TRUE(eventually([&] { return !runner.view().last_error.empty(); }));
  EXPECT_EQ(runner.view().last_error.find("canary"), std::string::npos) << runner.view().last_error;
  EXPECT_EQ(runner.view().state.find("canary"), std::string::npos) << runner.view().state;
  EXPECT_NE(runner.view().last_error.find(broker.server.address()), std::string::npos);
}

TEST(NatsForeignStreamTest, OneSubjectThatTheStreamDoesNotTakeIsNamedAndStopsNoOther) {
  NatsServer server;
  change_stream(server.url(), "CREATE", {.subjects = {"backend.>"}});
  RelayRunner runner(nats_sink(without_views(at(server))), kEachMinute);
  runner.add(agent_event(1));
  add(runner, 2, 101);
  EXPECT_TRUE(
      error_says(runner, "driftd.agent.a.parked: stream DRIFT takes only backend.>; add driftd.agent.a.parked"));
  EXPECT_TRUE(delivered(runner, 100)) << runner.view().last_error;
  EXPECT_TRUE(stored(server.url(), 100));
  change_stream(server.url(), "UPDATE", {});
  EXPECT_TRUE(stored(server.url(), 101)) << runner.view().last_error;
}

/// Five events of five resources fail, with no delivery between them. If the sink did not know that such a failure is
/// the subject's, it would take it for the broker's.
TEST(NatsForeignStreamTest, AFullSubjectStopsNoOther) {
  NatsServer server;
  ForeignStream stream;
  stream.max_msgs_per_subject = 2;
  stream.discard_new_per_subject = true;
  change_stream(server.url(), "CREATE", stream);
  RelayRunner runner(nats_sink(without_views(at(server))), kEachMinute);
  add(runner, 1, 2);  // all on backend.orders-kafka.config.updated
  ASSERT_TRUE(delivered(runner, 2)) << runner.view().last_error;
  for (std::int64_t n = 3; n <= 7; ++n) runner.add(event_of_topic(n, n));
  EXPECT_TRUE(error_says(runner, sample_stored(7).stamp.id));
  EXPECT_TRUE(error_says(runner, "backend.orders-kafka.config.updated: maximum messages per subject exceeded"));
  EXPECT_EQ(runner.view().state.find("circuit open"), std::string::npos) << runner.view().state;
  runner.add(agent_event(8));
  runner.add(sample_stored(9, "deleted", core::ChangeType::deleted));
  EXPECT_TRUE(delivered(runner, 4)) << runner.view().last_error;
  stream.max_msgs_per_subject = -1;
  stream.discard_new_per_subject = false;
  change_stream(server.url(), "UPDATE", stream);
  EXPECT_TRUE(stored(server.url(), 9)) << runner.view().last_error;
}

/// The stream has no room for the large event. The sink does not know this answer, which does not hold for the others.
TEST(NatsForeignStreamTest, ARefusalThatNobodyCanClassifyStopsNoOther) {
  NatsServer server;
  ForeignStream stream;
  stream.max_bytes = 100'000;
  change_stream(server.url(), "CREATE", stream);
  RelayRunner runner(nats_sink(without_views(at(server))), kEachMinute);
  auto large = event_of_topic(1, 1);
  large.payload.append(200'000, 'x');
  runner.add(large);
  EXPECT_TRUE(error_says(runner, "maximum bytes exceeded"));
  for (std::int64_t n = 2; n <= 31; ++n) runner.add(event_of_topic(n, n));
  EXPECT_TRUE(delivered(runner, 30)) << runner.view().last_error;
  EXPECT_EQ(runner.view().state.find("circuit open"), std::string::npos) << runner.view().state;
  stream.max_bytes = -1;
  change_stream(server.url(), "UPDATE", stream);
  EXPECT_TRUE(stored(server.url(), 31)) << runner.view().last_error;
}

TEST(NatsForeignStreamTest, AViewThatTheStreamDoesNotTakeDoesNotStoreTheEventAgainAndAgain) {
  NatsServer server;
  ForeignStream stream;
  stream.subjects = {"backend.orders-kafka.>", "backend.type.>"};
  stream.duplicate_window_ms = 100;  // so short that the server does not drop a second message for us
  change_stream(server.url(), "CREATE", stream);
  RelayRunner runner(nats_sink(at(server)), kEachMinute);
  add(runner, 1, 1);
  EXPECT_TRUE(error_says(runner, "backend.source.kubernetes.config.updated: stream DRIFT takes only"));
  ASSERT_TRUE(eventually([&] {
    return runner.on_core([&] {
      const auto& failing = runner.outbox.cursors["s"].exceptions;
      return !failing.empty() && failing.front().attempts >= 3;
    });
  }));
  stream.subjects = {"backend.>"};
  change_stream(server.url(), "UPDATE", stream);
  ASSERT_TRUE(delivered(runner, 1));
  EXPECT_EQ(stream_contents(server.url(), "DRIFT").size(), 3U);
}

TEST(NatsForeignStreamTest, AStreamThatEvictsWhatNobodyHasSeenIsSaidToDoSo) {
  NatsServer server;
  ForeignStream stream;
  stream.max_msgs = 10;
  stream.discard_old = true;
  change_stream(server.url(), "CREATE", stream);
  RelayRunner runner(nats_sink(without_views(at(server))), std::chrono::milliseconds(200));
  add(runner, 1, 30);
  ASSERT_TRUE(delivered(runner, 30)) << runner.view().last_error;
  EXPECT_NE(runner.view().state.find("'discard: old'"), std::string::npos) << runner.view().state;
}

TEST(NatsForeignStreamTest, AStreamThatItsConsumersEmptyIsNotTakenForOneThatLostSomething) {
  NatsServer server;
  ForeignStream stream;
  stream.max_msgs_per_subject = 1;
  stream.discard_old = true;
  change_stream(server.url(), "CREATE", stream);
  RelayRunner runner(nats_sink(without_views(at(server))), std::chrono::milliseconds(100));
  add(runner, 1, 30);
  ASSERT_TRUE(delivered(runner, 30)) << runner.view().last_error;
  runner.add(sample_stored(31, "deleted", core::ChangeType::deleted));
  ASSERT_TRUE(delivered(runner, 31));
  EXPECT_FALSE(eventually([&] { return runner.view().delivered > 31; }, std::chrono::seconds(1)))
      << "an event was sent again";
}

TEST(NatsForeignStreamTest, SubjectsThatAnotherStreamHasAreExplained) {
  NatsServer server;
  change_stream(server.url(), "CREATE", {.name = "OTHERS", .subjects = {"backend.>"}});
  RelayRunner runner(nats_sink(without_views(at(server))));
  add(runner, 1, 1);
  EXPECT_TRUE(error_says(runner, "(JetStream error 10065): another stream has backend.> or driftd.agent.> already"));
}

TEST(NatsForeignStreamTest, AStreamThatIsAbsentAndNotToBeMadeIsExplained) {
  NatsServer server;
  auto settings = without_views(at(server));
  settings.create_stream = false;
  RelayRunner runner(nats_sink(settings));
  add(runner, 1, 1);
  EXPECT_TRUE(error_says(runner, "no stream DRIFT"));
}

}  // namespace
}  // namespace driftd::test
