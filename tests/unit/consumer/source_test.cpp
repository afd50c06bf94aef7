// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <atomic>
#include <future>

#include "backend_cache.hpp"
#include "driftd/consumer/backend.hpp"
#include "support/process.hpp"

namespace driftd::consumer {
namespace {

using test::TempDir;

/// The RFC's own example.
constexpr const char* kRfc = R"({
  "message_source": {"type": "kafka",
    "config": {"brokers": ["kafka-0:9092", "kafka-1:9092"], "security_protocol": "PLAINTEXT"},
    "capabilities": ["pubsub_basic", "pubsub_persistent"]},
  "state_store": {"type": "redis",
    "config": {"host": "redis-master", "port": 6379, "password": "supersecret", "database": 0},
    "capabilities": ["keyvalue_basic"]}})";

TEST(FileSource, TheRfcsFileIsReadAndItsPasswordIsKeptApart) {
  TempDir dir;
  const auto source = file_source(dir.write("backends.json", kRfc));
  const auto redis = source->get("redis-infrastructure", "state_store");
  ASSERT_TRUE(redis) << redis.error().message;
  EXPECT_EQ(redis->name, "redis-infrastructure");
  EXPECT_EQ(redis->type, "redis");
  EXPECT_EQ(redis->endpoint, "redis-master:6379");
  EXPECT_EQ(redis->clear.at("password").reveal(), "supersecret");
  EXPECT_EQ(redis->config_json, R"({"database":0,"host":"redis-master","port":6379})");
  const auto kafka = source->get("kafka", "message_source");
  ASSERT_TRUE(kafka);
  EXPECT_EQ(kafka->endpoint, "kafka-0:9092,kafka-1:9092");
  EXPECT_EQ(kafka->capabilities, (std::vector<std::string>{"pubsub_basic", "pubsub_persistent"}));
}

TEST(FileSource, ThePathComesFromTheEnvironment) {
  TempDir dir;
  ::setenv("BACKEND_CONFIG_PATH", dir.write("b.json", kRfc).c_str(), 1);
  EXPECT_TRUE(file_source()->get("x", "state_store"));
  ::unsetenv("BACKEND_CONFIG_PATH");
  EXPECT_NE(file_source()
                ->get("x", "state_store")
                .error()
                .message.find("failed to read backend config: /config/backends.json"),
            std::string::npos);
}

TEST(FileSource, MistakesAreNamedByEntryAndMember) {
  TempDir dir;
  const auto error = [&](const std::string& text) {
    const auto found = file_source(dir.write("b.json", text))->get("cache", "store");
    const std::string path = dir.file("b.json");
    std::string out = found ? "no error" : found.error().message;
    const std::size_t at = out.find(path);
    return at == out.npos ? out : out.replace(at, path.size(), "B");
  };
  EXPECT_EQ(error("{"), "failed to parse backend config: B: not valid JSON at byte 2");
  EXPECT_EQ(error("[]"), "failed to parse backend config: B: expected an object, found array");
  EXPECT_EQ(error("{}"), "B has neither an entry for the slot store nor one for the backend cache");
  EXPECT_EQ(error(R"({"store": 1})"), "failed to parse backend config: B: store: expected an object, found number");
  EXPECT_EQ(error(R"({"store": {"sort": "redis"}})"), "failed to parse backend config: B: store.sort: unknown member");
  EXPECT_EQ(error(R"({"store": {"type": 1}})"),
            "failed to parse backend config: B: store.type: expected a string, found number");
  EXPECT_EQ(error(R"({"store": {"config": {"host": "h", "port": 99999}}})"),
            "failed to parse backend config: B: store.config.port: expected a number from 1 to 65535");
  EXPECT_EQ(error(R"({"cache": {"credentials": {"password": "hunter2"}}})"),
            "failed to parse backend config: B: cache.credentials.password: credential reference: it has no scheme; a "
            "reference is `env:NAME`, `file:/path`, `k8s:<namespace>/<name>#<key>` or `agent:<backend>#<reference>`");
  EXPECT_EQ(
      error(R"({"store": {"config": {"password": "a"}, "credentials": {"password": "env:A"}}})"),
      "failed to parse backend config: B: store.credentials.password: config.password has a value, too; keep one");
  EXPECT_EQ(error(R"({"store": {"backend": "other"}})"),
            "B: store.backend names another backend than cache, which the slot store is bound to");
}

TEST(SlotConfigTest, HostAndPortAreThoseOfTheFirstEndpoint) {
  const auto parts = [](const std::string& endpoint) {
    SlotConfig config;
    config.backend.endpoint = endpoint;
    return config.host() + "|" + std::to_string(config.port());
  };
  EXPECT_EQ(parts("h:1,i:2"), "h|1");
  EXPECT_EQ(parts("[::1]:6379"), "::1|6379");
  EXPECT_EQ(parts("::1"), "::1|0");
  EXPECT_EQ(parts("h"), "h|0");
  EXPECT_EQ(parts("h:x"), "h|0");
  EXPECT_EQ(parts("h:70000"), "h|0");
  EXPECT_EQ(parts(""), "|0");
}

/// Answers when the test lets it.
class SlowSource final : public BackendSource {
 public:
  Result<Backend> get(const std::string& backend, const std::string&) override {
    const int number = ++asked;
    if (number == 1) first.get_future().wait();
    Backend out;
    out.name = backend;
    out.endpoint = "answer:" + std::to_string(number);
    return out;
  }
  bool differs_by_slot() const override { return false; }
  bool follows_events() const override { return true; }
  std::atomic<int> asked{0};
  std::promise<void> first;
};

TEST(BackendCacheTest, ManySlotsAskOnceAndAnAnswerFromBeforeTheEventIsNotKept) {
  SlowSource source;
  BackendCache cache(source);
  auto early = std::async(std::launch::async, [&] { return cache.get("cache", "a"); });
  ASSERT_TRUE(test::eventually([&] { return source.asked == 1; }));
  cache.invalidate("cache");
  source.first.set_value();
  EXPECT_EQ(early.get()->endpoint, "answer:1");
  EXPECT_EQ(cache.get("cache", "b")->endpoint, "answer:2") << "answer 1 is older than the event";
  for (int i = 0; i < 50; ++i) EXPECT_EQ(cache.get("cache", std::to_string(i))->endpoint, "answer:2");
  EXPECT_EQ(source.asked, 2);
  cache.invalidate("other");
  EXPECT_EQ(cache.get("cache", "b")->endpoint, "answer:2");
}

/// Has nothing better than a fallback twice, then an answer.
class ProvisionalSource final : public BackendSource {
 public:
  Result<Backend> get(const std::string& backend, const std::string&) override {
    Backend out;
    out.name = backend;
    out.provisional = ++asked < 3;
    return out;
  }
  bool differs_by_slot() const override { return false; }
  bool follows_events() const override { return true; }
  int asked = 0;
};

TEST(BackendCacheTest, AProvisionalAnswerIsNotKept) {
  ProvisionalSource source;
  BackendCache cache(source);
  EXPECT_TRUE(cache.get("cache", "a")->provisional);
  EXPECT_TRUE(cache.get("cache", "b")->provisional);
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(cache.get("cache", "a")->provisional);
  EXPECT_EQ(source.asked, 3);
}

}  // namespace
}  // namespace driftd::consumer
