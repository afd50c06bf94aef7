// SPDX-License-Identifier: Apache-2.0
#include "resolver/config_file.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "resolver/document.hpp"
#include "support/process.hpp"

namespace driftd::resolver {
namespace {

using consumer::Secret;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

mode_t mode_of(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777 : 0;
}
int files_in(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}
std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ResolverConfigFile, AReaderSeesTheFormerOneOrTheNewOneAndNothingElse) {
  const test::TempDir dir;
  const ConfigFile file(dir.file("backends.json"));
  const Secret first(std::string(200'000, 'a')), second(std::string(300'000, 'b'));
  ASSERT_TRUE(file.write(first));
  std::atomic<bool> end{false};
  std::atomic<int> reads{0}, torn{0};
  std::thread reader([&] {
    while (!end) {
      const std::string text = content_of(dir.file("backends.json"));
      if (text != first.reveal() && text != second.reveal()) ++torn;
      ++reads;
    }
  });
  for (int n = 0; n < 100 || reads < 50; ++n) EXPECT_TRUE(file.write(n % 2 == 0 ? second : first));
  end = true;
  reader.join();
  EXPECT_EQ(torn, 0) << "of " << reads << " readings";
  EXPECT_EQ(mode_of(dir.file("backends.json")), 0400U);
  EXPECT_EQ(files_in(dir.path()), 1) << "nothing is left beside it";
}

TEST(ResolverConfigFile, AFailedWriteLeavesTheFormerFileAndSaysWhatToDo) {
  const test::TempDir dir;
  const std::string path = dir.file("backends.json");
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);  // the rename fails, also for root
  dir.write("backends.json/kept", "former");
  const auto failed = ConfigFile(path).write(Secret("canary"));
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("failed to write backend config: " + path + ": rename: "));
  EXPECT_THAT(failed.error().message, HasSubstr("emptyDir with medium: Memory"));
  EXPECT_THAT(failed.error().message, Not(HasSubstr("canary")));
  EXPECT_EQ(content_of(path + "/kept"), "former");
  EXPECT_EQ(files_in(dir.path()), 1) << "the temporary file is removed";
  EXPECT_FALSE(ConfigFile(dir.file("missing/backends.json")).write(Secret("canary")));
}

TEST(ResolverConfigFile, ItIsTheFileOnlyIfContentAndRightsAre) {
  const test::TempDir dir;
  const std::string path = dir.file("backends.json");
  const ConfigFile file(path);
  const Secret text("canary");
  EXPECT_FALSE(file.has(text));
  ASSERT_TRUE(file.write(text));
  EXPECT_TRUE(file.has(text));
  EXPECT_FALSE(file.has(Secret("canarY")));
  fs::permissions(path, fs::perms(0644));
  EXPECT_FALSE(file.has(text)) << "others can read it now";
}

TEST(ResolverConfigFile, WhatAKilledResolverLeftIsRemovedAndNothingElse) {
  const test::TempDir dir;
  dir.write(".backends.json.aB3dEf", "half of canary");
  dir.write(".backends.json.other-name", "somebody's");
  dir.write("other.json", "somebody's");
  ConfigFile(dir.file("backends.json")).remove_leftovers();
  EXPECT_FALSE(fs::exists(dir.file(".backends.json.aB3dEf")));
  EXPECT_EQ(files_in(dir.path()), 2);
}

TEST(ResolverConfigFile, AVolumeInMemoryIsKnown) {
  if (!fs::exists("/dev/shm")) GTEST_SKIP() << "no tmpfs here";
  EXPECT_TRUE(ConfigFile("/dev/shm/backends.json").in_memory());
  EXPECT_FALSE(ConfigFile("/proc/backends.json").in_memory());
}

/// The consumer library reads what the resolver writes.
TEST(ResolverDocument, TheConsumerLibraryReadsItBack) {
  const test::TempDir dir;
  consumer::SlotConfig redis, kafka;
  redis.backend.name = "orders-cache";
  redis.backend.type = "redis";
  redis.backend.endpoint = "redis-master.infrastructure.svc.cluster.local:6379";
  redis.backend.config_json = R"({"database": 0})";
  redis.backend.capabilities = {"keyvalue_basic", "keyvalue_ttl"};
  redis.credentials["password"] = Secret("quote\" and \n newline");
  kafka.backend.type = "kafka";
  kafka.backend.endpoint = "a:9092,b:9092";
  kafka.backend.config_json = R"({"auth": {"sasl": {"mechanism": "PLAIN"}}})";
  kafka.credentials["auth.sasl.password"] = Secret("nested");
  const std::string path = dir.file("backends.json");
  ASSERT_TRUE(ConfigFile(path).write(render_document({{"message_source", kafka}, {"state_store", redis}})));
  const auto source = consumer::file_source(path);
  const auto found = source->get("orders-cache", "state_store");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->endpoint, redis.backend.endpoint);
  EXPECT_EQ(found->capabilities, redis.backend.capabilities);
  EXPECT_EQ(found->clear.at("password").reveal(), "quote\" and \n newline");
  EXPECT_THAT(content_of(path), HasSubstr("\"port\": 6379"));
  const auto other = source->get("any", "message_source");
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->endpoint, "a:9092,b:9092");
  EXPECT_THAT(other->config_json, HasSubstr(R"("sasl":{"mechanism":"PLAIN","password":"nested"})"));
}

}  // namespace
}  // namespace driftd::resolver
