// SPDX-License-Identifier: Apache-2.0
// The three forms in which a webhook gets events, and what a refused batch costs.
#include "base/digest.hpp"
#include "hook.hpp"

namespace driftd::test {
namespace {

using Mode = sinks::WebhookMode;

sinks::WebhookSettings batches(const HttpReceiver& receiver, int requests = 1) {
  auto out = hook_settings(receiver);
  out.mode = Mode::batch;
  out.max_in_flight = requests;
  return out;
}

/// Runs the sink over an outbox in which these events wait already, so that the first request can be a full batch
/// however slow the machine is.
RelayRunner over_waiting(const sinks::WebhookSettings& settings, std::vector<core::StoredEvent> events) {
  MemoryOutbox before;
  for (auto& event : events) before.add(std::move(event));
  return RelayRunner(hook(settings), std::chrono::milliseconds(300), std::move(before));
}

/// The samples with these numbers, both included.
std::vector<core::StoredEvent> samples(int first, int last) {
  std::vector<core::StoredEvent> out;
  for (int i = first; i <= last; ++i) out.push_back(sample_stored(i));
  return out;
}

TEST(WebhookModesTest, ABinaryEventHasItsAttributesInHeadersAndItsDataAsBody) {
  HttpReceiver receiver;
  auto settings = hook_settings(receiver);
  settings.mode = Mode::binary;
  RelayRunner runner(hook(settings));
  runner.add(stored_event_of("größe 100%", 7));
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().last_error;
  const auto got = receiver.received().at(0);
  EXPECT_EQ(header(got, "content-type"), "application/json");
  EXPECT_EQ(header(got, "ce-specversion"), "1.0");
  EXPECT_EQ(header(got, "ce-id"), header(got, "webhook-id"));
  EXPECT_EQ(header(got, "ce-type"), "io.driftd.backend.config.updated.v1");
  EXPECT_EQ(header(got, "ce-source"), "//default/driftd/kafka");
  EXPECT_EQ(header(got, "ce-subject"), "orders-kafka/topic/gr%C3%B6%C3%9Fe%20100%25");
  EXPECT_EQ(header(got, "ce-time"), "2025-11-21T04:40:00.000Z");
  EXPECT_EQ(header(got, "ce-driftseq"), "7");
  EXPECT_EQ(nlohmann::json::parse(got.body).at("backend_name"), "orders-kafka");
  EXPECT_TRUE(verifies(got, kNewKey));
}

TEST(WebhookModesTest, EventsThatWaitTogetherAreOneSignedBatch) {
  HttpReceiver receiver;
  RelayRunner runner = over_waiting(batches(receiver), samples(1, 51));
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 51; })) << runner.view().last_error;
  const auto requests = receiver.received();
  ASSERT_LE(requests.size(), 3U) << "those that waited are one batch, which has room for 64";
  std::size_t largest = 0;
  for (const auto& request : requests) {
    EXPECT_EQ(header(request, "content-type"), "application/cloudevents-batch+json; charset=UTF-8");
    EXPECT_TRUE(verifies(request, kNewKey));
    std::string ids;
    for (const auto& id : ids_in(request)) ids += id + "\n";
    const bool alone = ids_in(request).size() == 1;
    EXPECT_EQ(header(request, "webhook-id"),
              alone ? ids_in(request).at(0) : "batch-" + to_hex(sha256(ids)).substr(0, 32));
    largest = std::max(largest, ids_in(request).size());
  }
  EXPECT_GE(largest, 20U);
  EXPECT_EQ(accepted(receiver).size(), 51U);
}

TEST(WebhookModesTest, ABatchKeepsItsBounds) {
  HttpReceiver receiver;
  auto settings = batches(receiver);
  settings.batch = {7, 1 << 20};
  {
    RelayRunner runner = over_waiting(settings, samples(1, 40));
    ASSERT_TRUE(eventually([&] { return runner.view().delivered == 40; })) << runner.view().last_error;
  }
  for (const auto& request : receiver.received()) EXPECT_LE(ids_in(request).size(), 7U);
  HttpReceiver second;
  settings.url = second.url();
  const std::size_t one = proto::cloudevent_json(sample_stored(10)).value().size();
  settings.batch = {64, one * 5 / 2};
  RelayRunner runner = over_waiting(settings, samples(11, 40));
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 30; })) << runner.view().last_error;
  std::size_t largest = 0;
  for (const auto& request : second.received()) {
    EXPECT_LE(request.body.size(), settings.batch.bytes);
    largest = std::max(largest, ids_in(request).size());
  }
  EXPECT_EQ(largest, 2U);
}

TEST(WebhookModesTest, TwoEventsOfOneResourceAreNeverInOneBatch) {
  HttpReceiver receiver;
  std::vector<core::StoredEvent> events;
  for (int i = 1; i <= 60; ++i) events.push_back(stored_event_of("t" + std::to_string(i % 6), i));
  RelayRunner runner = over_waiting(batches(receiver, 4), events);
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 60; })) << runner.view().last_error;
  std::map<std::string, int> last;
  for (const auto& request : receiver.received()) {
    std::set<std::string> keys;
    for (const auto& event : nlohmann::json::parse(request.body)) {
      const std::string key = event.at("partitionkey");
      EXPECT_TRUE(keys.insert(key).second) << key;
      const int sequence = std::stoi(event.at("driftseq").get<std::string>());
      EXPECT_GT(sequence, std::exchange(last[key], sequence)) << key;
    }
  }
}

/// The parameter is the status with which a request is refused that contains one event. 0: it is never answered.
class PoisonedBatch : public ::testing::TestWithParam<int> {};

TEST_P(PoisonedBatch, BlamesNobodyButTheEventThatIsRefusedAlone) {
  const std::string poison = sample_stored(30).stamp.id;
  HttpScripted refusal{GetParam() == 0 ? 200 : GetParam(), {}, GetParam() == 0 ? 60'000 : 0};
  refusal.only_for = poison;
  HttpReceiver receiver({refusal, HttpScripted{200}});
  auto settings = batches(receiver, 2);
  settings.total_timeout = std::chrono::milliseconds(800);
  RelayRunner runner = over_waiting(settings, samples(1, 100));
  EXPECT_TRUE(eventually([&] { return runner.view().delivered == 99; }))
      << runner.view().state << " " << runner.view().last_error << " " << runner.view().delivered;
  ASSERT_TRUE(eventually([&] { return runner.view().in_flight == 0; }));
  const auto view = runner.view();
  EXPECT_EQ(view.retrying, 1);
  EXPECT_EQ(view.dead, 0);
  EXPECT_NE(view.last_error.find(poison), std::string::npos) << view.last_error;
  int batches_with_poison = 0;
  for (const auto& request : receiver.received()) {
    if (request.body.find(poison) != std::string::npos && ids_in(request).size() > 1) ++batches_with_poison;
  }
  EXPECT_EQ(batches_with_poison, 1) << "an event of a refused batch is sent alone from then on";
  if (GetParam() == 0) return;  // what came with it was received, and not answered
  for (const auto& [id, times] : accepted(receiver)) {
    if (id != poison) {
      EXPECT_EQ(times, 1) << id;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Answers, PoisonedBatch, ::testing::Values(0, 302, 400, 403, 413, 429, 500, 503),
                         [](const auto& status) {
                           return status.param == 0 ? "TimeOut" : "Http" + std::to_string(status.param);
                         });

TEST(WebhookModesTest, ARefusedEventIsAloneAlsoWhenItIsTriedAgainAmongOthers) {
  const std::string poison = sample_stored(30).stamp.id;
  HttpScripted refusal{500};
  refusal.only_for = poison;
  HttpReceiver receiver({refusal, HttpScripted{200, {}, 60}});
  RelayRunner runner = over_waiting(batches(receiver), samples(1, 60));
  int added = 60;
  int batches = 0, alone = 0;
  const auto tried_again = [&] {
    for (int i = 0; i < 8; ++i) runner.add(sample_stored(++added));  // others wait at any moment
    batches = alone = 0;
    for (const auto& request : receiver.received()) {
      if (request.body.find(poison) != std::string::npos) ++(ids_in(request).size() > 1 ? batches : alone);
    }
    return batches + alone >= 3;
  };
  ASSERT_TRUE(eventually(tried_again)) << runner.view().last_error;
  EXPECT_EQ(batches, 1);
  EXPECT_TRUE(eventually([&] { return runner.view().delivered == added - 1; })) << runner.view().state;
}

TEST(WebhookModesTest, AnEndpointThatRefusesEverythingIsNotAskedForEachEventOfABatch) {
  HttpReceiver receiver({HttpScripted{500}});
  RelayRunner runner = over_waiting(batches(receiver, 2), samples(1, 200));
  ASSERT_TRUE(eventually([&] { return runner.view().state.rfind("circuit open", 0) == 0; })) << runner.view().state;
  ASSERT_TRUE(eventually([&] { return runner.view().in_flight == 0; }));
  EXPECT_LE(receiver.received().size(), 40U) << "a few of each batch prove that the endpoint is to blame";
  EXPECT_EQ(runner.view().dead, 0);
}

TEST(WebhookModesTest, ABatchWaitsAsLongAsTheReceiverAsks) {
  HttpReceiver receiver({HttpScripted{429, {{"Retry-After", "2"}}}, HttpScripted{200}});
  RelayRunner runner = over_waiting(batches(receiver), samples(1, 30));
  ASSERT_TRUE(eventually([&] { return receiver.received().size() == 1; }));
  const auto refused = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] { return receiver.received().size() > 1; }));
  EXPECT_GE(std::chrono::steady_clock::now() - refused, std::chrono::milliseconds(1'500));
  EXPECT_TRUE(eventually([&] { return runner.view().delivered == 30; })) << runner.view().last_error;
}

TEST(WebhookModesTest, ABatchOfAReceiverThatSaysGoneIsKept) {
  HttpReceiver receiver({HttpScripted{410}});
  RelayRunner runner = over_waiting(batches(receiver), samples(1, 30));
  ASSERT_TRUE(eventually([&] { return runner.view().state.rfind("disabled", 0) == 0; })) << runner.view().state;
  EXPECT_EQ(receiver.received().size(), 1U);
  EXPECT_EQ(runner.view().dead, 0);
}

TEST(WebhookModesTest, BatchesOfAReceiverThatIsDownArriveWhenItIsBack) {
  HttpReceiver receiver;
  RelayRunner runner(hook(batches(receiver, 2)));
  receiver.kill();
  for (int i = 1; i <= 100; ++i) runner.add(sample_stored(i));
  ASSERT_TRUE(eventually([&] { return runner.view().state.rfind("circuit open", 0) == 0; }));
  receiver.start();
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 100; })) << runner.view().last_error;
  EXPECT_EQ(accepted(receiver).size(), 100U);
}

}  // namespace
}  // namespace driftd::test
