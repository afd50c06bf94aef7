// SPDX-License-Identifier: Apache-2.0
// Subscriptions of a real agent, and callbacks to a real gRPC server.
#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

const std::string kCallbacks =
    "  heartbeat: 1s\n  allow_plain_loopback: true\n  callbacks: { allow: [\"127.0.0.1:*\"] }\n";

v1::BackendEventSubscription subscription(const std::string& subscriber, const std::string& endpoint) {
  v1::BackendEventSubscription out;
  out.set_subscriber_id(subscriber);
  out.add_backend_names("plat*");
  out.set_callback_endpoint(endpoint);
  return out;
}

grpc::Status create(v1::BackendEvents::Stub& stub, const v1::BackendEventSubscription& one,
                    v1::SubscriberStatus* out = nullptr) {
  grpc::ClientContext context;
  v1::CreateSubscriptionRequest request;
  v1::SubscriberStatus ignored;
  *request.mutable_subscription() = one;
  return stub.CreateSubscription(&context, request, out == nullptr ? &ignored : out);
}

grpc::Status update(v1::BackendEvents::Stub& stub, const v1::BackendEventSubscription& one) {
  grpc::ClientContext context;
  v1::UpdateSubscriptionRequest request;
  v1::SubscriberStatus ignored;
  *request.mutable_subscription() = one;
  return stub.UpdateSubscription(&context, request, &ignored);
}

bool remove(v1::BackendEvents::Stub& stub, const std::string& subscriber) {
  grpc::ClientContext context;
  v1::DeleteSubscriptionRequest request;
  v1::DeleteSubscriptionResponse answer;
  request.set_subscriber_id(subscriber);
  EXPECT_TRUE(stub.DeleteSubscription(&context, request, &answer).ok());
  return answer.existed();
}

/// Returns the row of `driftd queue` for a sink.
nlohmann::json books(const Agent& agent, const std::string& sink) {
  for (const auto& row : agent.ask({"status"}).value("sinks", nlohmann::json::array())) {
    if (row.value("name", "") == sink) return row;
  }
  return {};
}

TEST_F(GrpcLine, ACallbackGetsEachEventAlsoThoseOfTheTimeWhenItWasDown) {
  Agent agent = this->agent(kCallbacks);
  start(agent);
  CallbackServer server;
  server.start();
  const auto stub = this->stub();
  ASSERT_TRUE(create(*stub, subscription("orders", server.endpoint())).ok());
  topics_.add("a", 20);
  ASSERT_TRUE(eventually([&] { return server.topics().size() == 20; })) << agent.log();
  EXPECT_TRUE(eventually([&] { return status_of("orders").status() == "Connected"; }));
  EXPECT_EQ(server.received()[0].subscriber_id(), "orders");
  server.stop();
  topics_.add("b", 20);
  ASSERT_TRUE(eventually([&] { return status_of("orders").status() == "Retrying"; })) << status_of("orders").detail();
  agent.kill();
  start(agent);
  server.start();
  EXPECT_TRUE(eventually([&] { return server.topics().size() == 40; }, seconds(40))) << agent.log();
  EXPECT_TRUE(eventually([&] { return status_of("orders").waiting() == 0; }));
  EXPECT_EQ(status_of("orders").dead_letters(), 0);
  EXPECT_EQ(status_of("orders").sink(), "grpc/orders");
}

TEST_F(GrpcLine, ARefusedEventWaitsForItsRetryAndTheOthersGoOn) {
  Agent agent = this->agent(kCallbacks);
  start(agent);
  CallbackServer server;
  server.refuse("a3");
  server.start();
  ASSERT_TRUE(create(*stub(), subscription("orders", server.endpoint())).ok());
  topics_.add("a", 10);
  ASSERT_TRUE(eventually([&] { return server.topics().size() == 9; })) << agent.log();
  EXPECT_TRUE(eventually([&] { return status_of("orders").waiting() == 1; })) << status_of("orders").DebugString();
  EXPECT_THAT(agent.cli({"queue"}).out, HasSubstr("grpc/orders"));
}

TEST_F(GrpcLine, TypesAndNamesOfASubscriptionChooseItsEvents) {
  Agent agent = this->agent(kCallbacks);
  start(agent);
  CallbackServer all, none, other, updates;
  for (auto* server : {&all, &none, &other, &updates}) server->start();
  auto of_type = subscription("rotations", none.endpoint());
  of_type.add_event_types(v1::BACKEND_CHANGE_TYPE_CREDENTIAL_ROTATED);
  auto of_name = subscription("nats", other.endpoint());
  of_name.set_backend_names(0, "nats-*");
  const auto stub = this->stub();
  ASSERT_TRUE(create(*stub, subscription("all", all.endpoint())).ok());
  ASSERT_TRUE(create(*stub, of_type).ok());
  ASSERT_TRUE(create(*stub, of_name).ok());
  auto updated = subscription("updates", updates.endpoint());  // a new topic is a drift: its subject is the same
  updated.add_event_types(v1::BACKEND_CHANGE_TYPE_UPDATED);
  ASSERT_TRUE(create(*stub, updated).ok());
  topics_.add("a", 5);
  ASSERT_TRUE(eventually([&] { return all.topics().size() == 5; })) << agent.log();
  EXPECT_TRUE(none.received().empty());
  EXPECT_TRUE(other.received().empty());
  EXPECT_TRUE(eventually([&] { return status_of("updates").delivered() == 5 && status_of("updates").waiting() == 0; }));
  EXPECT_TRUE(updates.received().empty());
}

TEST_F(GrpcLine, AnEndpointThatNeverAnswersHoldsUpNoCallAboutSubscriptions) {
  constexpr seconds kAnswer{5};  // the promise is a second; agent.drain is 10 s
  Agent agent = this->agent(kCallbacks);
  start(agent);
  const DeafServer deaf, other;
  CallbackServer server;
  server.start();
  const auto stub = this->stub();
  ASSERT_TRUE(create(*stub, subscription("orders", deaf.address())).ok());
  ASSERT_TRUE(create(*stub, subscription("gone", other.address())).ok());
  topics_.add("a", 5);
  ASSERT_TRUE(eventually([&] { return deaf.called() && other.called() && status_of("gone").waiting() > 0; }));
  EXPECT_LT(time_of([&] { EXPECT_TRUE(remove(*stub, "gone")); }), kAnswer);
  EXPECT_LT(time_of([&] { EXPECT_TRUE(update(*stub, subscription("orders", server.endpoint())).ok()); }), kAnswer);
  EXPECT_TRUE(eventually([&] { return server.topics().size() == 5; }, seconds(30))) << agent.log();
  EXPECT_TRUE(books(agent, "grpc/gone").is_null());
}

TEST_F(GrpcLine, SubscriptionsAreStoredAndTheSameAgainIsNoError) {
  Agent agent = this->agent(kCallbacks);
  start(agent);
  const auto one = subscription("orders", "127.0.0.1:9");
  {
    const auto stub = this->stub();
    EXPECT_TRUE(create(*stub, one).ok());
    EXPECT_TRUE(create(*stub, one).ok());
    auto changed = one;
    changed.add_backend_names("other");
    EXPECT_EQ(create(*stub, changed).error_code(), grpc::StatusCode::ALREADY_EXISTS);
    EXPECT_TRUE(update(*stub, changed).ok());
    EXPECT_EQ(update(*stub, subscription("nobody", "")).error_code(), grpc::StatusCode::NOT_FOUND);
  }
  agent.kill();
  start(agent);
  EXPECT_EQ(status_of("orders").subscription().backend_names_size(), 2);
  const auto stub = this->stub();
  EXPECT_TRUE(remove(*stub, "orders"));
  EXPECT_FALSE(remove(*stub, "orders"));
  agent.kill();
  start(agent);
  EXPECT_EQ(status_of("orders").subscription().subscriber_id(), "");
  EXPECT_TRUE(books(agent, "grpc/orders").is_null());
}

TEST_F(GrpcLine, AMovedEndpointGetsWhatItsPredecessorDidNot) {
  Agent agent = this->agent(kCallbacks);
  start(agent);
  CallbackServer next;
  next.start();
  const auto stub = this->stub();
  ASSERT_TRUE(create(*stub, subscription("orders", "127.0.0.1:9")).ok());
  topics_.add("a", 8);
  ASSERT_TRUE(eventually([&] { return status_of("orders").waiting() >= 8; })) << agent.log();
  ASSERT_TRUE(update(*stub, subscription("orders", next.endpoint())).ok());
  EXPECT_TRUE(eventually([&] { return next.topics().size() == 8; })) << agent.log();
}

TEST_F(GrpcLine, DeletingASubscriptionWithWaitingEventsReportsThem) {
  Agent agent = this->agent(kCallbacks);
  start(agent);
  v1::SubscribeRequest request;
  request.set_agent_events(true);
  const Reader reader(channel(), request);
  const auto stub = this->stub();
  ASSERT_TRUE(create(*stub, subscription("orders", "127.0.0.1:9")).ok());
  topics_.add("a", 8);
  ASSERT_TRUE(eventually([&] { return status_of("orders").waiting() >= 8; })) << agent.log();
  EXPECT_TRUE(remove(*stub, "orders"));
  const auto gap = [&] {
    for (const auto& message : reader.all()) {
      if (message.has_agent_event() && message.agent_event().what() == "gap") return true;
    }
    return false;
  };
  EXPECT_TRUE(eventually(gap)) << agent.log();
}

TEST_F(GrpcLine, AnEndpointThatIsNotAllowedOrNotReadableIsRefused) {
  Agent agent = this->agent(kCallbacks);
  start(agent);
  const auto stub = this->stub();
  const grpc::Status other = create(*stub, subscription("orders", "10.0.0.1:7070"));
  EXPECT_EQ(other.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(other.error_message(), HasSubstr("grpc.callbacks.allow"));
  for (const char* bad :
       {"127.0.0.1", "http://127.0.0.1:80", "127.0.0.1:0", "127.0.0.1:99999", "unix:/tmp/x", ":7070"}) {
    EXPECT_EQ(create(*stub, subscription("orders", bad)).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << bad;
  }
  EXPECT_EQ(create(*stub, subscription("a b", "")).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace driftd::test
