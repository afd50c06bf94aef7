// SPDX-License-Identifier: Apache-2.0
// An agent with every kind of receiver is killed again and again while 200 resources a second change.
#include <algorithm>
#include <csignal>
#include <random>

#include "receivers.hpp"
#include "support/kafka.hpp"
#include "support/patience.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;

constexpr std::size_t kMostRepeated = 256;  // events of a sink after a kill (docs/delivery.md, cursor)
const std::map<std::string, std::string> kHookSecret = {{"HOOK_SECRET", "hook-canary-of-24-bytes!"}};
const std::string kGrpc =
    "grpc:\n  socket: SOCKET\n  heartbeat: 1s\n  allow_plain_loopback: true\n"
    "  callbacks: { allow: [\"127.0.0.1:*\"] }\n";

std::string webhook_sink(const HttpReceiver& receiver) {
  return "  ops: { type: webhook, url: \"" + receiver.url() +
         "\", secret: \"${env:HOOK_SECRET}\", allow_http_loopback: true }\n";
}

std::string kafka_sink(const KafkaServer& server) {
  return "  topic: { type: kafka, bootstrap_servers: [\"" + server.address() + "\"], topic: kills, partitions: 4 }\n";
}

void subscribe(const std::string& socket, const std::string& endpoint) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  v1::CreateSubscriptionRequest request;
  request.mutable_subscription()->set_subscriber_id("orders");
  request.mutable_subscription()->set_callback_endpoint(endpoint);
  v1::SubscriberStatus ignored;
  const auto created = v1::BackendEvents::NewStub(channel_to(socket))->CreateSubscription(&context, request, &ignored);
  ASSERT_TRUE(created.ok()) << created.error_message();
}

class AllSinksKills : public testing::Test {
 protected:
  AllSinksKills()
      : callback_(free_port()),
        world_(kGrpc, webhook_sink(hook_) + kafka_sink(kafka_), kHookSecret),
        wire_(world_.nats.url(), "backend.>"),
        stream_(world_.socket()) {}

  /// Kills the agent after some changes. In three of five kills a receiver's process stood still before, so that more
  /// than the sink may repeat is under way when the agent dies. Two kills in three leave the workers to end by
  /// themselves. One in ten comes during the start.
  void kill_and_restart(int kill) {
    const bool stalled = kill % 5 >= 2;
    if (stalled) pass_without_receiver(kill % 5 - 2);
    if (HasFatalFailure()) return;
    std::uniform_int_distribution<std::size_t> changes(0, stalled || starting_ ? 25 : 120);
    ASSERT_TRUE(world_.writer.wait_for(changes(random_))) << "the file sink does not get on: " << world_.end_of_log();
    world_.kill(kill % 3 == 0);
    starting_ = kill % 10 == 0;
    if (starting_) return world_.start();
    const auto took = world_.start_until_ready();
    ASSERT_TRUE(took) << "not ready after kill " << kill << world_.end_of_log();
    restarts_.push_back(*took);
  }

  /// One receiver's process stands still during more changes than its sink may repeat.
  void pass_without_receiver(int which) {
    const auto signal = [&](int number) {
      if (which == 0) world_.nats.signal(number);
      if (which == 1) number == SIGSTOP ? kafka_.pause() : kafka_.go_on();
      if (which == 2) hook_.signal(number);
    };
    signal(SIGSTOP);
    const bool changed = world_.writer.wait_for(kMostRepeated + 50);
    signal(SIGCONT);
    ASSERT_TRUE(changed) << "the file sink does not get on: " << world_.end_of_log();
  }

  /// Expects everything that holds for one receiver, and prints its figures.
  void audit(const std::string& name, const Deliveries& got, std::size_t most_repeated = kMostRepeated) const {
    EXPECT_EQ(lost(world_.writer.written(), got), "") << name;
    EXPECT_EQ(out_of_order(got), "") << name;
    EXPECT_EQ(ambiguous(got), "") << name;
    EXPECT_EQ(holes(got), "") << name;
    const auto repeated = repetitions(got, world_.runs.count());
    const auto most = std::max_element(repeated.begin(), repeated.end());
    EXPECT_LE(*most, most_repeated) << name << ", run " << most - repeated.begin();
    EXPECT_EQ(repeated[0], 0U) << name << ": nothing was killed before the first run";
    std::printf("%-10s %7zu deliveries of %zu events; repeated after one kill: %zu at most, %.1f on average\n",
                name.c_str(), got.size(), distinct(got), *most,
                static_cast<double>(got.size() - distinct(got)) / static_cast<double>(world_.runs.count() - 1));
  }

  KafkaServer kafka_;
  HttpReceiver hook_;
  CallbackReceiver callback_;
  KillWorld world_;
  NatsSubscriber wire_;
  ResumingStream stream_;
  std::mt19937 random_{17};
  std::vector<double> restarts_;
  bool starting_ = false;  ///< the agent was started and nobody waited until it was ready
};

TEST_F(AllSinksKills, LoseNothingRepeatLittleAndKeepTheOrder) {
  const int kills = number_from_env("DRIFTD_AGENT_KILLS", 20);
  ASSERT_TRUE(world_.start_until_ready()) << world_.end_of_log();
  ASSERT_TRUE(eventually([&] { return world_.agent.established({"platform"}); })) << world_.end_of_log();
  subscribe(world_.socket(), callback_.endpoint());
  world_.writer.start();
  for (int kill = 0; kill < kills; ++kill) {
    kill_and_restart(kill);
    if (HasFatalFailure()) return;
  }
  ASSERT_TRUE(world_.writer.wait_for(2 * KillWorld::kPerSecond));
  world_.writer.stop();

  const seconds limit(60 + kills / 2);
  const auto& runs = world_.runs;
  const auto lines = world_.complete(
      "file", [&] { return from_file(world_.lines(), world_.file_sizes); }, limit);
  const auto streamed = world_.complete(
      "stream", [&] { return from_grpc(stream_.arrivals(), runs); }, limit);
  const auto called = world_.complete(
      "callback", [&] { return from_grpc(callback_.arrivals(), runs); }, limit);
  const auto hooked = world_.complete(
      "webhook", [&] { return from_webhook(hook_.received(), runs); }, limit);
  const auto records = world_.complete(
      "kafka", [&] { return from_kafka(topic_contents(kafka_.address(), "kills"), runs); }, limit);
  const auto sent = world_.complete(
      "nats", [&] { return from_nats(wire_.received(), runs); }, limit);
  const auto stored = world_.complete(
      "jetstream", [&] { return from_nats(stream_contents(world_.nats.url(), "DRIFT"), Runs()); }, limit);

  std::printf("%d kills, %zu changes at %.0f/s (the writer waited %.2f s at most)\n", kills, world_.writer.count(),
              world_.writer.per_second(), world_.writer.held_seconds());
  audit("file", lines);
  audit("stream", streamed, 0);  // a token names the last message that was dealt with
  audit("callback", called);
  audit("webhook", hooked);
  audit("kafka", records);
  audit("nats", sent);
  EXPECT_EQ(lost(world_.writer.written(), stored) + out_of_order(stored) + ambiguous(stored), "");
  EXPECT_EQ(stored.size(), distinct(stored)) << "the stream drops what comes twice within its window";
  EXPECT_EQ(stream_.faults(), "");
  for (const auto* other : {&called, &records, &sent, &stored}) EXPECT_EQ(different(streamed, *other, true), "");
  EXPECT_EQ(different(lines, hooked, true), "");
  EXPECT_EQ(different(lines, streamed, false), "");

  std::printf("restart to ready: p50 %.3f s, p99 %.3f s, maximum %.3f s of %zu\n", percentile(restarts_, 0.5),
              percentile(restarts_, 0.99), percentile(restarts_, 1), restarts_.size());
  EXPECT_LE(percentile(restarts_, 0.99), 1.0 * kPatience);
  EXPECT_TRUE(eventually([&] { return world_.agent.cli({"books"}).code == 0; }, seconds(30)))
      << world_.agent.cli({"books"}).out;
}

}  // namespace
}  // namespace driftd::test
