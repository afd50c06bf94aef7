// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "core/registration_names.hpp"
#include "core/value/path.hpp"
#include "grpc/subscribers.hpp"
#include "support/sink_events.hpp"

namespace driftd::rpc {
namespace {

using core::ChangeType;
using core::Subscription;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A store in memory that can fail.
class MemorySubscriptions final : public core::Subscriptions {
 public:
  Task<Result<std::vector<Subscription>>> subscriptions() override {
    std::vector<Subscription> out;
    for (const auto& [id, one] : rows) out.push_back(one);
    co_return out;
  }
  Task<Status> put_subscription(Subscription one, core::AuditEntry line) override {
    lines.push_back(line.verb);
    rows[one.subscriber] = one;
    co_return Status{};
  }
  Task<Status> delete_subscription(std::string id, core::AuditEntry line) override {
    lines.push_back(line.verb);
    rows.erase(id);
    co_return Status{};
  }
  std::map<std::string, Subscription> rows;
  std::vector<std::string> lines;  ///< verbs of the audit lines that came with the changes
};

class NoSink final : public core::Sink {
 public:
  core::RetryPolicy policy() const override { return {}; }
  Task<Status> start() override { co_return Status{}; }
  Task<core::Attempt> send(core::StoredEvent) override { co_return core::Attempt{}; }
  Task<void> stop() override { co_return; }
  std::string describe() const override { return "connected"; }
};

/// Notes what is asked of it; `fails` makes the next start fail.
class NotedHost final : public SinkHost {
 public:
  void add(std::string name, std::unique_ptr<core::Sink>) override { running.insert(name); }
  Task<Status> start(std::string name, std::unique_ptr<core::Sink>) override {
    if (std::exchange(fails, false)) co_return fail(Code::unavailable, "the store is full");
    running.insert(name);
    calls.push_back("start " + name);
    co_return Status{};
  }
  Task<Status> stop(std::string name) override {
    running.erase(name);
    calls.push_back("stop " + name);
    co_return Status{};
  }
  Task<Status> remove(std::string name) override {
    if (std::exchange(remove_fails, false)) co_return fail(Code::unavailable, "the store is full");
    running.erase(name);
    std::erase(cursors, name);
    calls.push_back("remove " + name);
    co_return Status{};
  }
  Task<Result<std::vector<std::string>>> stored() override { co_return cursors; }
  void route(std::vector<core::Route> next) override { routes = std::move(next); }
  std::vector<core::SinkView> views() const override {
    std::vector<core::SinkView> out;
    for (const auto& name : running) {
      out.emplace_back().name = name;
      out.back().type = "grpc";
      out.back().state = "connected";
    }
    return out;
  }
  std::set<std::string> running;
  std::vector<std::string> cursors, calls;
  std::vector<core::Route> routes;
  bool fails = false, remove_fails = false;
};

class SubscribersTest : public testing::Test {
 protected:
  std::unique_ptr<Subscribers> open() {
    auto out = std::make_unique<Subscribers>(
        core_.get_executor(), store_, host_,
        [](const Subscription&) -> Result<std::unique_ptr<core::Sink>> { return std::make_unique<NoSink>(); },
        [this](const std::string& endpoint) {
          return endpoint == forbidden_ ? Status(fail(Code::denied, "not allowed")) : Status{};
        });
    const Status loaded = wait(out->load());
    EXPECT_TRUE(loaded);
    return out;
  }
  template <class T>
  T wait(Task<T> task) {
    std::optional<T> out;
    asio::co_spawn(core_, std::move(task), [&out](std::exception_ptr, T value) { out = std::move(value); });
    core_.restart();
    core_.run();
    return std::move(out.value());
  }

  asio::io_context core_;
  MemorySubscriptions store_;
  NotedHost host_;
  std::string forbidden_;
  const Subscription orders_{"orders", {"kafka-*"}, {}, "runner:7070"};
  const core::AuditEntry line_;
};

TEST_F(SubscribersTest, CreatingTwiceStartsOneSinkAndOneRoute) {
  const auto subscribers = open();
  EXPECT_TRUE(wait(subscribers->create(orders_, line_)));
  EXPECT_TRUE(wait(subscribers->create(orders_, line_)));
  EXPECT_THAT(host_.calls, ElementsAre("start grpc/orders"));
  EXPECT_EQ(store_.lines.size(), 1u) << "the second call changed nothing";
  ASSERT_EQ(host_.routes.size(), 1u);
  EXPECT_THAT(host_.routes[0].to, ElementsAre("grpc/orders"));
  EXPECT_THAT(host_.routes[0].backend, ElementsAre("kafka-*"));
}

TEST_F(SubscribersTest, AStartThatFailsIsFinishedByTheSameCallAgain) {
  const auto subscribers = open();
  host_.fails = true;
  const auto half = wait(subscribers->create(orders_, line_));
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().message, HasSubstr("the subscription is stored, but its callback does not run"));
  EXPECT_THAT(host_.routes, IsEmpty());
  EXPECT_TRUE(wait(subscribers->create(orders_, line_)));
  EXPECT_TRUE(host_.running.contains("grpc/orders"));
  EXPECT_EQ(host_.routes.size(), 1u);
}

TEST_F(SubscribersTest, ARemovalThatFailsIsFinishedByTheSameCallAgain) {
  const auto subscribers = open();
  ASSERT_TRUE(wait(subscribers->create(orders_, line_)));
  host_.remove_fails = true;
  const auto half = wait(subscribers->remove("orders", line_));
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().message, HasSubstr("the subscription is deleted, but its callback goes on"));
  EXPECT_TRUE(wait(subscribers->remove("orders", line_)));
  EXPECT_THAT(host_.running, IsEmpty()) << "what waits would go on being sent to somebody who unsubscribed";
  EXPECT_THAT(host_.routes, IsEmpty());
}

TEST_F(SubscribersTest, ARestartAddsTheSinksOfStoredRowsAndRemovesThoseWithoutARow) {
  store_.rows["orders"] = orders_;
  store_.rows["reader"] = {"reader", {}, {}, ""};
  host_.cursors = {"bus", "grpc/orders", "grpc/gone", "grpc/reader"};
  const auto subscribers = open();
  EXPECT_THAT(host_.running, ElementsAre("grpc/orders"));
  EXPECT_THAT(host_.cursors, ElementsAre("bus", "grpc/orders"));
  EXPECT_EQ(host_.routes.size(), 1u);
}

TEST_F(SubscribersTest, AnEndpointThatIsNotAllowedAnyMoreIsNeitherCalledNorForgotten) {
  store_.rows["orders"] = orders_;
  host_.cursors = {"grpc/orders"};
  forbidden_ = "runner:7070";
  const auto subscribers = open();
  EXPECT_THAT(host_.running, IsEmpty());
  EXPECT_THAT(host_.routes, IsEmpty());
  EXPECT_THAT(host_.cursors, ElementsAre("grpc/orders"));
  EXPECT_EQ(subscribers->get("orders")->detail, "not allowed");
}

TEST_F(SubscribersTest, AChangedEndpointStopsTheOldSinkBeforeTheNewOneStarts) {
  const auto subscribers = open();
  ASSERT_TRUE(wait(subscribers->create(orders_, line_)));
  auto moved = orders_;
  moved.callback_endpoint = "runner-2:7070";
  EXPECT_TRUE(wait(subscribers->update(moved, line_)));
  EXPECT_THAT(host_.calls, ElementsAre("start grpc/orders", "stop grpc/orders", "start grpc/orders"));
  moved.callback_endpoint.clear();
  EXPECT_TRUE(wait(subscribers->update(moved, line_)));
  EXPECT_EQ(host_.calls.back(), "remove grpc/orders");
  EXPECT_THAT(host_.routes, IsEmpty());
}

TEST_F(SubscribersTest, CallbacksHaveAMaximum) {
  const auto subscribers = open();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(wait(subscribers->create({"s" + std::to_string(i), {}, {}, "runner:7070"}, line_)));
  }
  const auto more = wait(subscribers->create({"more", {}, {}, "runner:7070"}, line_));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::budget);
  EXPECT_TRUE(wait(subscribers->create({"reader", {}, {}, ""}, line_)));
  EXPECT_FALSE(store_.rows.contains("more"));
}

TEST_F(SubscribersTest, StatusFollowsStreams) {
  const auto subscribers = open();
  subscribers->stream_opened("runner");
  EXPECT_EQ(subscribers->list().at(0).status, "Connected");
  subscribers->stream_closed("runner");
  EXPECT_THAT(subscribers->list(), IsEmpty());
}

/// The subjects that events of each type really have.
TEST(RouteTest, ATypeLetsItsOwnEventsThrough) {
  const std::vector<std::pair<ChangeType, std::string>> events = {
      {ChangeType::created, "created"},
      {ChangeType::updated, "updated"},
      {ChangeType::updated, "config.updated"},
      {ChangeType::deleted, "deleted"},
      {ChangeType::credential_rotated, "credentials.rotated"},
      {ChangeType::health_changed, "health.changed"},
      {ChangeType::endpoint_changed, "endpoint.changed"},
      {ChangeType::config_drift_detected, "config.updated"}};
  for (const auto& [type, what] : events) {
    const auto routes = std::vector<core::Route>{route_of({"s", {}, {type}, "h:1"})};
    EXPECT_THAT(core::resolve_routes(routes, what, "b", {}, {}), ElementsAre("grpc/s")) << what;
    EXPECT_THAT(core::resolve_routes(routes, "drift.decided", "b", {}, {}), IsEmpty());
    EXPECT_THAT(core::resolve_routes(routes, "agent.gap", "b", {}, {}), IsEmpty());
  }
  const auto all = std::vector<core::Route>{route_of({"s", {}, {}, "h:1"})};
  EXPECT_THAT(core::resolve_routes(all, "drift.decided", "b", {}, {}), ElementsAre("grpc/s"));
}

std::string shown(const std::string& type, const std::string& settings) {
  core::BackendSnapshot registration;
  registration.type = type;
  registration.config_json = R"({"name":"x","settings":)" + settings + "}";
  return core::shown_backend(registration).config_json;
}

TEST(BackendConfigTest, WhatWasDiscoveredHasThemAlready) {
  core::BackendSnapshot found;
  found.type = "kafka";
  found.config_json = R"({"config":{"kafka":{"brokers":["k:9092"]}},"labels":{"a":"b"},"name":"x"})";
  EXPECT_EQ(core::shown_backend(found).config_json, R"({"kafka":{"brokers":["k:9092"]}})");
  EXPECT_EQ(core::event_config("kafka", found.config_json), found.config_json);
  found.config_json.clear();
  EXPECT_EQ(core::shown_backend(found).config_json, R"({"kafka":{}})") << "nothing is known of it";
}

TEST(BackendConfigTest, SettingsHaveTheRfcsNames) {
  EXPECT_EQ(
      shown("kafka",
            R"({"bootstrap_servers":"k1:9093, k2:9093","sasl":{"username":"d","password":"${file:/p}"},"tls":{}})"),
      R"({"kafka":{"auth":{"sasl":{"password":"${file:/p}","username":"d"}},"brokers":["k1:9093","k2:9093"],)"
      R"("security_protocol":"SASL_SSL","tls":{}}})");
  EXPECT_EQ(shown("kafka", R"({"bootstrap_servers":["k1"]})"),
            R"({"kafka":{"brokers":["k1"],"security_protocol":"PLAINTEXT"}})");
  EXPECT_EQ(shown("redis", R"({"address":"cache:6380","password":"${env:P}"})"),
            R"({"redis":{"host":"cache","password":"${env:P}","port":6380,"tls_enabled":false}})");
  EXPECT_EQ(shown("redis", R"({"address":"unix:/run/redis.sock"})"),
            R"({"redis":{"address":"unix:/run/redis.sock","tls_enabled":false}})");
  EXPECT_EQ(shown("postgres", R"({"endpoints":["db1"],"user":"d"})"),
            R"({"postgres":{"host":"db1","port":5432,"username":"d"}})");
  EXPECT_EQ(shown("k8s", "[]"), R"({"k8s":{}})");
}

TEST(BackendConfigTest, APortThatIsNotANumberStaysText) {
  EXPECT_EQ(shown("redis", R"({"address":"cache:x"})"), R"({"redis":{"address":"cache:x","tls_enabled":false}})");
}

}  // namespace
}  // namespace driftd::rpc
