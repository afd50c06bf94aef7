// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "backoff.hpp"
#include "checkpoint.hpp"
#include "circuit_breaker.hpp"
#include "driftd/consumer/event.hpp"
#include "driftd/v1/event.pb.h"
#include "metrics.hpp"
#include "runner_settings.hpp"
#include "support/process.hpp"

namespace driftd::consumer {
namespace {

using std::chrono::milliseconds;
using test::TempDir;

TEST(SubscriptionTest, ItIsMadeFromTheBindingsAndAlternatesAreInIt) {
  const auto made = subscription_of("order-consumer",
                                    {{"a", "kafka", "", {}}, {"b", "cache", "", {"cache-b"}}, {"c", "kafka", "", {}}});
  EXPECT_EQ(made.subscriber_id, "order-consumer");
  EXPECT_EQ(made.backend_names, (std::vector<std::string>{"cache", "cache-b", "kafka"}));
}

/// A type that is added to the protobuf file fails here until somebody decides what a consumer does about it.
TEST(SubscriptionTest, EveryTypeOfTheProtobufFileIsSubscribedOrNeedsNoAction) {
  const auto made = subscription_of("p", {{"a", "b", "", {}}});
  const std::set<ChangeType> subscribed(made.event_types.begin(), made.event_types.end());
  const std::set<std::string> no_action = {"BACKEND_CHANGE_TYPE_UNSPECIFIED",
                                           "BACKEND_CHANGE_TYPE_CONFIG_DRIFT_DETECTED"};
  const auto* type = v1::BackendChangeType_descriptor();
  for (int i = 0; i < type->value_count(); ++i) {
    const bool wanted = subscribed.count(static_cast<ChangeType>(type->value(i)->number())) != 0;
    EXPECT_NE(wanted, no_action.count(std::string(type->value(i)->name())) != 0) << type->value(i)->name();
  }
}

TEST(SubscriptionTest, SubjectsAreEscapedAsTheAgentPublishes) {
  EXPECT_EQ(subject_of_backend("orders-kafka"), "backend.orders-kafka.>");
  EXPECT_EQ(subject_of_backend("orders.eu"), "backend.orders=2Eeu.>");
  EXPECT_EQ(subject_of_backend("type"), "backend.=74ype.>");
  EXPECT_EQ(subject_of_backend("source"), "backend.=73ource.>");
}

BackendEvent parsed(const v1::BackendChangeEvent& event) {
  const auto out = parse_backend_event(event.SerializeAsString());
  return out ? *out : BackendEvent{};
}

TEST(EventTest, TheNewEndpointIsFoundInTheEntryOrInWhatChanged) {
  v1::BackendChangeEvent event;
  event.set_backend_name("cache");
  event.set_change_type(v1::BACKEND_CHANGE_TYPE_ENDPOINT_CHANGED);
  event.mutable_old_state()->set_endpoint("a:1");
  event.mutable_new_state()->set_endpoint("a:1");
  EXPECT_EQ(parsed(event).endpoint, "");
  auto* change = event.add_changes();
  change->set_path("primary");
  change->set_change_class("endpoint");
  change->set_new_value("\"10.0.0.2:6379\"");
  EXPECT_EQ(parsed(event).endpoint, "10.0.0.2:6379");
  event.mutable_new_state()->set_endpoint("b:2");
  EXPECT_EQ(parsed(event).endpoint, "b:2");
  event.mutable_new_state()->set_endpoint("a:1");
  event.clear_changes();
  for (const auto& [path, value] : {std::pair{"config.redis.host", "\"c\""}, std::pair{"config.redis.port", "3"}}) {
    auto* each = event.add_changes();
    each->set_path(path);
    each->set_change_class("endpoint");
    each->set_new_value(value);
  }
  EXPECT_EQ(parsed(event).endpoint, "c:3");
  event.mutable_changes(0)->set_new_value("\"[REDACTED]\"");
  EXPECT_EQ(parsed(event).endpoint, "") << "a withheld value is no host";
}

TEST(EventTest, RandomBytesAreAnErrorOrAnEventAndNothingElse) {
  std::mt19937 random(17);
  v1::BackendChangeEvent event;
  event.set_backend_name("cache");
  event.set_change_type(v1::BACKEND_CHANGE_TYPE_HEALTH_CHANGED);
  (*event.mutable_new_state()->mutable_metadata())["health"] = "down";
  const std::string good = event.SerializeAsString();
  for (int i = 0; i < 50'000; ++i) {
    std::string body = good;
    for (auto left = 1 + random() % 4; left > 0; --left) body[random() % body.size()] = static_cast<char>(random());
    const auto found = parse_backend_event(body);
    EXPECT_TRUE(found || found.error().code == Code::invalid);
  }
  EXPECT_EQ(parsed(event).health, "down");
  event.set_change_type(static_cast<v1::BackendChangeType>(99));
  EXPECT_EQ(parsed(event).type, ChangeType::unspecified) << "a type of a later version";
}

BackendEvent at(const std::string& key, std::uint64_t incarnation, std::uint64_t sequence) {
  BackendEvent out;
  out.backend = "cache";
  out.key = key;
  out.order = {incarnation, sequence};
  return out;
}

TEST(CheckpointTest, OrderIsByIncarnationThenSequenceForEachKeyAndSurvives) {
  TempDir dir;
  const std::string path = dir.file("checkpoint.json");
  std::string note;
  {
    auto checkpoint = *Checkpoint::open(path, "p/", note);
    EXPECT_EQ(checkpoint->judge(at("k", 1, 5)), Checkpoint::Verdict::fresh);
    checkpoint->applied(at("k", 1, 5));
    checkpoint->change("cache", [](BackendMemory& kept) { kept.endpoint = "b:2"; });
    ASSERT_TRUE(checkpoint->save());
  }
  auto checkpoint = *Checkpoint::open(path, "p/", note);
  EXPECT_EQ(checkpoint->judge(at("k", 1, 5)), Checkpoint::Verdict::duplicate);
  EXPECT_EQ(checkpoint->judge(at("k", 1, 4)), Checkpoint::Verdict::old);
  EXPECT_EQ(checkpoint->judge(at("k", 2, 1)), Checkpoint::Verdict::fresh);
  EXPECT_EQ(checkpoint->judge(at("other", 1, 1)), Checkpoint::Verdict::fresh);
  EXPECT_EQ(checkpoint->memory("cache").endpoint, "b:2");
  EXPECT_EQ(note, "");
}

TEST(CheckpointTest, AnotherPatternsFileIsRefusedAndADamagedOneIsPutAside) {
  TempDir dir;
  std::string note;
  const std::string path = dir.file("c.json");
  {
    auto checkpoint = *Checkpoint::open(path, "p/", note);
    checkpoint->applied(at("k", 1, 5));
    ASSERT_TRUE(checkpoint->save());
  }
  const auto other = Checkpoint::open(path, "q/", note);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("belongs to \"p/\", not to \"q/\""), std::string::npos) << other.error().message;
  for (const char* damage : {"", "{", "[]", R"({"version":1,"owner":"p/","backends":{"a":{}},"applied":[]})",
                             R"({"version":1,"owner":"p/","backends":{},"applied":[["k",-1,"x"]]})"}) {
    dir.write("c.json", damage);
    note.clear();
    const auto opened = Checkpoint::open(path, "p/", note);
    ASSERT_TRUE(opened) << damage << opened.error().message;
    EXPECT_NE(note.find("was damaged"), std::string::npos) << damage;
    EXPECT_EQ(test::read_file(path + ".damaged"), damage);
  }
}

TEST(CheckpointTest, TheNumberOfKeysIsBounded) {
  std::string note;
  auto checkpoint = *Checkpoint::open("", "p/", note);
  for (std::uint64_t n = 0; n < 70'000; ++n) checkpoint->applied(at("k" + std::to_string(n), 1, 1));
  EXPECT_EQ(checkpoint->judge(at("k0", 1, 1)), Checkpoint::Verdict::fresh) << "the one that was applied longest ago";
  EXPECT_EQ(checkpoint->judge(at("k69999", 1, 1)), Checkpoint::Verdict::duplicate);
}

TEST(BackoffTest, WaitsDoubleWithJitterUpToTheirMaximumAndBeginAgain) {
  std::mt19937 random(1);
  Backoff backoff(milliseconds(100), milliseconds(1'000));
  milliseconds bound(100);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 20; ++i) {
    const auto wait = backoff.next(random);
    EXPECT_GE(wait, bound / 2);
    EXPECT_LE(wait, bound);
    seen.insert(wait.count());
    bound = std::min(bound * 2, milliseconds(1'000));
  }
  EXPECT_GT(seen.size(), 10U);
  backoff.reset();
  EXPECT_LE(backoff.next(random), milliseconds(100));
}

TEST(CircuitBreakerTest, ItOpensAfterFailuresInARowAndLetsOneAttemptThroughAfterAWhile) {
  std::mt19937 random(1);
  CircuitBreaker breaker(3, Backoff(milliseconds(100), milliseconds(1'000)));
  CircuitBreaker::Time now{};
  for (int i = 0; i < 2; ++i) breaker.failed(now, random);
  breaker.succeeded();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(breaker.allow(now));
    breaker.failed(now, random);
  }
  EXPECT_FALSE(breaker.allow(now));
  now += milliseconds(100);
  EXPECT_TRUE(breaker.allow(now));
  EXPECT_FALSE(breaker.allow(now)) << "one attempt decides";
  breaker.failed(now, random);
  now += milliseconds(99);
  EXPECT_FALSE(breaker.allow(now)) << "the second time is longer";
  breaker.reset();
  EXPECT_TRUE(breaker.allow(now));
  EXPECT_TRUE(breaker.allow(now));
}

TEST(MetricsTest, TheyHaveTheNamesAndLabelsOfTheRfc) {
  PatternMetrics metrics("order-\"consumer");
  metrics.add_backend("kafka-prod");
  metrics.event_received("kafka-prod");
  metrics.event_received("invented");
  metrics.credential_rotated(milliseconds(50));
  const std::string text = metrics.render();
  const auto has = [&](const std::string& line) { return text.find("\n" + line + "\n") != text.npos; };
  EXPECT_TRUE(has(R"(prism_pattern_backend_event_received_total{pattern="order-\"consumer",backend="kafka-prod"} 1)"))
      << text;
  EXPECT_TRUE(has(R"(prism_pattern_credential_rotation_duration_seconds{pattern="order-\"consumer"} 0.050000)"))
      << text;
  EXPECT_TRUE(has(R"(prism_pattern_backend_reconnect_total{pattern="order-\"consumer",backend="kafka-prod"} 0)"))
      << text;
  EXPECT_EQ(text.find("invented"), text.npos);
}

TEST(SettingsTest, MistakesAreNamed) {
  const auto error = [](auto change) {
    RunnerSettings settings;
    settings.pattern = "p";
    settings.slots = {{"s", "b", "", {}}};
    change(settings);
    const auto good = check_settings(settings);
    return good ? std::string("good") : good.error().message;
  };
  EXPECT_EQ(error([](auto&) {}), "good");
  EXPECT_EQ(error([](auto& s) { s.pattern = ""; }), "settings: pattern: is empty");
  EXPECT_EQ(error([](auto& s) { s.slots.clear(); }), "settings: slots: 1 to 1,024 are possible, found 0");
  EXPECT_EQ(error([](auto& s) {
              s.slots.push_back({"s", "c", "", {}});
            }),
            "settings: slots[1].slot: `s` is there twice");
  EXPECT_EQ(error([](auto& s) { s.slots[0].backend = "a>b"; }),
            "settings: slots[0].backend: has a space, a control character, `/`, `*` or `>`");
  EXPECT_EQ(error([](auto& s) { s.slots[0].alternates = {"b"}; }), "settings: slots[0].alternates: `b` is there twice");
  EXPECT_EQ(error([](auto& s) { s.max_parallel_connects = 0; }),
            "settings: max_parallel_connects: expected 1 to 64, found 0");
  EXPECT_EQ(error([](auto& s) { s.nats.stream = "A.B"; }), "settings: nats.stream: is not the name of a stream");
}

TEST(SettingsTest, DurableNamesOfTwoPatternsNeverCollide) {
  EXPECT_NE(durable_name("a_b", "", "c"), durable_name("a", "b", "c"));
  EXPECT_NE(durable_name("a.b", "", "c"), durable_name("a_b", "", "c"));
  const std::string name = durable_name(std::string(128, 'a'), "pod.0", "x/y *>");
  EXPECT_EQ(name.find_first_of(". */>"), name.npos) << name;
  EXPECT_LT(name.size(), 128U);
}

}  // namespace
}  // namespace driftd::consumer
