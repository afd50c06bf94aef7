// SPDX-License-Identifier: Apache-2.0
// Subscribe streams of a real agent.
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

v1::SubscribeRequest from(v1::SubscribeRequest::Start start, const std::string& subscriber = {}) {
  v1::SubscribeRequest out;
  out.set_start(start);
  out.set_subscriber_id(subscriber);
  return out;
}

v1::SubscribeRequest after(const std::string& token) {
  v1::SubscribeRequest out;
  out.set_resume_token(token);
  return out;
}

/// Without heartbeats, only a commit wakes a stream.
TEST_F(GrpcLine, AStreamTellsItsPositionAndThenEachEvent) {
  Agent agent = this->agent("  heartbeat: 1h\n");
  start(agent);
  Reader reader(channel(), from(v1::SubscribeRequest::START_NOW, "order-consumer"));
  ASSERT_TRUE(eventually([&] { return !reader.all().empty(); })) << agent.log();
  EXPECT_TRUE(reader.all()[0].has_position());
  topics_.add("new", 3);
  ASSERT_TRUE(eventually([&] { return reader.topics().size() == 3; })) << agent.log();
  const Event event = reader.events().front();
  EXPECT_EQ(event.backend_name(), "platform");
  EXPECT_EQ(event.backend_type(), "terraform");
  EXPECT_FALSE(event.event_id().empty());
  v1::ListSubscriptionsResponse listed;
  grpc::ClientContext context;
  ASSERT_TRUE(stub()->ListSubscriptions(&context, {}, &listed).ok());
  ASSERT_EQ(listed.subscribers_size(), 1);
  EXPECT_EQ(listed.subscribers(0).status(), "Connected");
  EXPECT_EQ(listed.subscribers(0).streams(), 1u);
}

TEST_F(GrpcLine, AFilterThatMatchesNothingGetsHeartbeatsWithATokenThatMovesOn) {
  Agent agent = this->agent();
  start(agent);
  v1::SubscribeRequest request = from(v1::SubscribeRequest::START_OLDEST);
  request.add_backend_names("nats-*");
  Reader reader(channel(), request);
  topics_.add("new", 2);
  const auto beat_after = [&](std::int64_t seq) {
    for (const auto& message : reader.all()) {
      if (message.has_heartbeat() && message.heartbeat().after_seq() >= seq) return true;
    }
    return false;
  };
  ASSERT_TRUE(eventually([&] { return beat_after(3); })) << agent.log();
  EXPECT_TRUE(reader.events().empty());
}

/// The subscriber keeps only the token of the last message that it has dealt with.
TEST_F(GrpcLine, AReaderThatResumesAfterKillsMissesNothing) {
  Agent agent = this->agent();
  start(agent);
  std::string token;
  std::set<std::string> got;
  std::map<std::string, std::string> contents;  // by event id
  for (int kill = 0; kill < 5; ++kill) {
    Reader reader(channel(), token.empty() ? from(v1::SubscribeRequest::START_OLDEST) : after(token));
    topics_.add("k" + std::to_string(kill) + "-", 40);
    const auto one_arrived = [&] { return reader.topics().contains("k" + std::to_string(kill) + "-7"); };
    ASSERT_TRUE(eventually(one_arrived, seconds(40))) << agent.log();
    agent.kill();
    ASSERT_TRUE(eventually([&] { return reader.ended().has_value(); }));
    for (const auto& message : reader.all()) {
      EXPECT_FALSE(message.has_gap()) << message.gap().detail();
      if (!message.has_event()) continue;
      got.insert(topic_of(message.event()));
      const std::string bytes = message.event().SerializeAsString();
      EXPECT_EQ(contents.try_emplace(message.event().event_id(), bytes).first->second.size(), bytes.size());
    }
    token = reader.token();
    start(agent);
  }
  Reader reader(channel(), after(token));
  const auto all = [&] {
    std::set<std::string> now = got;
    now.merge(reader.topics());
    now.erase("");
    return now.size() == 200u;
  };
  EXPECT_TRUE(eventually(all, seconds(60))) << got.size() << agent.log();
}

TEST_F(GrpcLine, ASlowReaderCostsBoundedMemoryAndDelaysNobody) {
  constexpr int kEvents = 10'000;
  Agent agent = this->agent();
  start(agent);
  grpc::ClientContext context;
  const auto stub = this->stub();
  const auto slow = stub->Subscribe(&context, from(v1::SubscribeRequest::START_NOW, "slow"));
  v1::SubscribeResponse message;
  ASSERT_TRUE(slow->Read(&message));
  topics_.add("warm", kEvents);
  Reader first(channel(), from(v1::SubscribeRequest::START_OLDEST));
  ASSERT_TRUE(eventually([&] { return first.topics().size() == kEvents; }, seconds(120))) << agent.log();
  const long before = resident_kib(agent.pid());
  const auto begun = std::chrono::steady_clock::now();
  Reader fast(channel(), from(v1::SubscribeRequest::START_NOW, "fast"));
  ASSERT_TRUE(eventually([&] { return !fast.all().empty(); }));
  topics_.add("more", kEvents);
  ASSERT_TRUE(eventually([&] { return fast.topics().size() == kEvents; }, seconds(120))) << agent.log();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  const long grown = resident_kib(agent.pid()) - before;
  RecordProperty("seconds_of_the_fast_reader", std::to_string(took.count()));
  RecordProperty("agent_grew_kib", std::to_string(grown));
  std::printf("10,000 events to the fast reader: %.2f s; the agent grew by %ld KiB\n", took.count(), grown);
  std::size_t bytes = 0;  // of what the slow reader has not taken since
  for (const auto& event : fast.events()) bytes += event.ByteSizeLong();
  EXPECT_LT(grown, static_cast<long>(bytes / 1024 / 2)) << "the agent holds events for a reader that does not read";
  std::set<std::string> read;
  while (read.size() < 2 * kEvents && slow->Read(&message)) {
    EXPECT_FALSE(message.has_gap()) << message.gap().detail();
    if (message.has_event() && !topic_of(message.event()).empty()) read.insert(topic_of(message.event()));
  }
  EXPECT_EQ(read.size(), 2u * kEvents);  // late, and complete
  context.TryCancel();
}

/// Sends a request to the admin socket, and never reads the answer. Returns the socket.
int ask_without_reading(const std::string& path, const std::string& target) {
  const int out = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::connect(out, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string request = "GET " + target + " HTTP/1.1\r\nHost: driftd\r\n\r\n";
  EXPECT_EQ(::send(out, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  return out;
}

/// Bytes that wait in the socket for a reader.
int unread(int socket) {
  int bytes = 0;
  return ::ioctl(socket, FIONREAD, &bytes) == 0 ? bytes : 0;
}

TEST_F(GrpcLine, ReadersThatDoNotReadDelayNoStop) {
  constexpr int kEvents = 3'000;
  Agent agent = this->agent();
  start(agent);
  grpc::ClientContext context;
  const auto stub = this->stub();
  const auto slow = stub->Subscribe(&context, from(v1::SubscribeRequest::START_NOW, "slow"));
  v1::SubscribeResponse message;
  ASSERT_TRUE(slow->Read(&message));
  Reader fast(channel(), from(v1::SubscribeRequest::START_OLDEST));
  topics_.add("warm", kEvents);
  ASSERT_TRUE(eventually([&] { return fast.topics().size() == kEvents; }, seconds(120))) << agent.log();
  const int deaf = ask_without_reading(agent.socket(), "/v1/resources?limit=3000");
  ASSERT_TRUE(eventually([&] { return unread(deaf) > 100'000; }));
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(agent.stop(), 0) << agent.log();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::printf("a stop with readers that do not read: %.2f s\n", took.count());
  EXPECT_LT(took.count(), 6) << "2 s are the calls' grace" << agent.log();
  ::close(deaf);
  context.TryCancel();
}

TEST_F(GrpcLine, ARestoredStoreIsAGapThatSaysSo) {
  Agent agent = this->agent();
  start(agent);
  std::string token;
  {
    Reader reader(channel(), from(v1::SubscribeRequest::START_OLDEST));
    ASSERT_TRUE(eventually([&] { return !reader.token().empty(); }));
    const std::string copy = dir_.file("copy");
    const Output saved = run({Agent::binary(), "-c", agent.config(), "backup", copy});
    ASSERT_EQ(saved.code, 0) << saved.err << saved.out;
    topics_.add("lost", 5);
    ASSERT_TRUE(eventually([&] { return reader.topics().size() == 5; })) << agent.log();
    token = reader.token();
  }
  ASSERT_EQ(agent.stop(), 0);
  const Output restored = run({Agent::binary(), "-c", agent.config(), "restore", dir_.file("copy")});
  ASSERT_EQ(restored.code, 0) << restored.err << restored.out;
  start(agent);
  Reader reader(channel(), after(token));
  const auto gap = [&] { return reader.all().size() >= 2 && reader.all()[1].has_gap(); };
  ASSERT_TRUE(eventually(gap)) << agent.log();
  EXPECT_EQ(reader.all()[1].gap().reason(), v1::StreamGap::REASON_INCARNATION);
  EXPECT_THAT(reader.all()[1].gap().detail(), HasSubstr("restored, cut or copied"));
  EXPECT_TRUE(eventually([&] { return reader.topics().size() == 5; })) << "the drifts are found again";
}

TEST_F(GrpcLine, AWrongTokenOrFilterIsRefusedWithWhatWasExpected) {
  Agent agent = this->agent();
  start(agent);
  Reader reader(channel(), after("1.2.3.4"));
  ASSERT_TRUE(eventually([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(reader.ended()->error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(reader.ended()->error_message(), HasSubstr("START_OLDEST"));
}

TEST_F(GrpcLine, StreamsBeyondTheMaximumAreRefusedAndAClosedOneMakesRoom) {
  Agent agent = this->agent("  heartbeat: 1s\n  max_streams: 2\n");
  start(agent);
  auto one = std::make_unique<Reader>(channel(), from(v1::SubscribeRequest::START_NOW));
  const Reader two(channel(), from(v1::SubscribeRequest::START_NOW));
  ASSERT_TRUE(eventually([&] { return !one->all().empty() && !two.all().empty(); }));
  const Reader three(channel(), from(v1::SubscribeRequest::START_NOW));
  ASSERT_TRUE(eventually([&] { return three.ended().has_value(); }));
  EXPECT_EQ(three.ended()->error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(three.ended()->error_message(), HasSubstr("grpc.max_streams"));
  one.reset();
  EXPECT_TRUE(eventually([&] {
    const Reader four(channel(), from(v1::SubscribeRequest::START_NOW));
    return eventually([&] { return !four.all().empty() || four.ended(); }) && !four.all().empty();
  }));
}

TEST_F(GrpcLine, AStopEndsStreamsAlsoThatOfAReaderThatDoesNotRead) {
  Agent agent = this->agent();
  start(agent);
  grpc::ClientContext context;
  const auto stub = this->stub();
  const auto slow = stub->Subscribe(&context, from(v1::SubscribeRequest::START_OLDEST));
  const Reader reader(channel(), from(v1::SubscribeRequest::START_OLDEST));
  topics_.add("new", 2'000);
  ASSERT_TRUE(eventually([&] { return reader.topics().size() == 2'000; }, seconds(60))) << agent.log();
  EXPECT_EQ(agent.stop(), 0) << agent.log();
  ASSERT_TRUE(eventually([&] { return reader.ended().has_value(); }));
  EXPECT_EQ(reader.ended()->error_code(), grpc::StatusCode::UNAVAILABLE);
  context.TryCancel();
}

}  // namespace
}  // namespace driftd::test
