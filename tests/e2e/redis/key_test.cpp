// SPDX-License-Identifier: Apache-2.0
// The installation's key is rotated between two starts of an agent: secrets that did not change cause no event, and
// each one that changed causes one.
#include <gmock/gmock.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/agent.hpp"
#include "support/redis.hpp"
#include "support/stream_events.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RotatedKeyLine : public testing::Test {
 protected:
  RotatedKeyLine() {
    server_.grant_readme("redis-canary");
    for (const char* user : {"steady", "moving", "asked"}) set_password(user, "old-canary");
  }
  void set_password(const std::string& user, const std::string& password) {
    EXPECT_EQ(server_.command({"ACL", "SETUSER", user, "on", "resetpass", ">" + password, "~app:*", "+get"}), "OK");
  }
  void start() {
    agent_.start();
    ASSERT_TRUE(eventually([&] { return agent_.established({"cache"}); }, std::chrono::seconds(60))) << agent_.log();
  }
  Output driftd(std::vector<std::string> words) {
    words.insert(words.begin(), {"--config", agent_.config()});
    return agent_.cli(std::move(words));
  }
  std::string key_file() const { return agent_.data_dir() + "/installation.key"; }
  long events_about(const std::string& user) const {
    const auto all = stream_events(nats_);
    return std::count_if(all.begin(), all.end(), [&](const auto& event) { return event.resource_id() == user; });
  }
  /// Runs a full refresh and waits for its end.
  void refresh() { EXPECT_EQ(agent_.cli({"refresh", "cache", "--full"}).code, 0) << agent_.log(); }
  nlohmann::json drift_of(const std::string& user) {
    for (auto& row : agent_.rows({"drifts"})) {
      if (row.value("resource", "") == "acl_user/" + user) return row;
    }
    return {};
  }

  TempDir dir_;
  NatsServer nats_;
  RedisServer server_;
  Agent agent_{
      dir_,
      "defaults:\n  interval: 200ms\nbackends:\n  - name: cache\n    provider: redis\n    settings: { address: \"" +
          server_.address() +
          "\", username: driftd, password: \"${env:REDIS_PASSWORD}\" }\n"
          "    policy: [ { match: { kind: acl_user, id: asked }, action: manual } ]\n"
          "sinks:\n  bus: { type: nats, servers: [\"" +
          nats_.url() + "\"], views: false }\n",
      {{"REDIS_PASSWORD", "redis-canary"}}};
};

TEST_F(RotatedKeyLine, ARotationIsNoChangeAndHidesNone) {
  ASSERT_NO_FATAL_FAILURE(start());
  set_password("asked", "second-canary");
  ASSERT_TRUE(eventually([&] { return drift_of("asked").is_object(); })) << agent_.log();
  const std::string ref_before = drift_of("asked").at("ref");
  const std::string leaked = read_file(key_file());
  const long asked_before = events_about("asked");
  const Output running = driftd({"key", "rotate"});
  EXPECT_EQ(running.code, 69);
  EXPECT_THAT(running.err, AllOf(HasSubstr("in use by pid"), HasSubstr("stop that agent")));
  ASSERT_EQ(agent_.stop(), 0);
  set_password("moving", "new-canary");
  for (int i = 0; i < 2; ++i) {
    const Output rotated = driftd({"key", "rotate", "--reason", "a backup was lost"});
    ASSERT_EQ(rotated.code, 0) << rotated.err;
    EXPECT_THAT(rotated.out, AllOf(HasSubstr("the store is rewritten under it"), HasSubstr("back up both now")));
  }
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_TRUE(
      arrives(nats_, {"cache", "acl_user/moving", "credentials.rotated", "auto-applied", "changed", "passwords"}));
  refresh();
  refresh();
  EXPECT_EQ(events_about("moving"), 1);
  EXPECT_EQ(events_about("steady"), 0);
  EXPECT_EQ(events_about("asked"), asked_before) << "the drift stays open and causes no second event";
  const Output old_ref = agent_.cli({"approve", ref_before, "--reason", "seen before"});
  EXPECT_NE(old_ref.code, 0) << "the reference was made under the former key";
  EXPECT_THAT(old_ref.err, HasSubstr("moved since you looked"));
  EXPECT_EQ(agent_.cli({"approve", drift_of("asked").at("ref"), "--reason", "planned"}).code, 0);
  set_password("asked", "old-canary");
  EXPECT_TRUE(eventually([&] { return drift_of("asked").is_object(); })) << "the approved value is not the baseline";
  set_password("asked", "second-canary");
  EXPECT_TRUE(eventually([&] { return drift_of("asked").is_null(); }));
  ASSERT_EQ(agent_.stop(), 0);

  const std::string newer = read_file(key_file());
  std::ofstream(key_file(), std::ios::binary) << leaked;
  const Output refused =
      run({Agent::binary(), "run", "--config", agent_.config()}, {{"REDIS_PASSWORD", "redis-canary"}});
  EXPECT_EQ(refused.code, 69);
  EXPECT_THAT(refused.err, HasSubstr("is from before a rotation"));
  std::ofstream(key_file(), std::ios::binary) << newer;
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(events_about("steady"), 0);
  const Output audit = agent_.cli({"audit"});
  EXPECT_THAT(audit.out, AllOf(HasSubstr("rotated key"), HasSubstr("a backup was lost")));
}

TEST_F(RotatedKeyLine, SlowLayerIsNoChangeAndHidesNone) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_EQ(agent_.stop(), 0);
  set_password("moving", "new-canary");
  const Output rotated = driftd({"key", "rotate", "--slow"});
  ASSERT_EQ(rotated.code, 0) << rotated.err;
  EXPECT_THAT(rotated.err,
              AllOf(HasSubstr("the store holds "), HasSubstr(" digests; a slow layer around them takes about")));
  EXPECT_THAT(rotated.out, HasSubstr("the store is rewritten under it"));
  const Output again = driftd({"key", "rotate", "--slow"});
  EXPECT_NE(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("has a slow layer already"));
  EXPECT_THAT(driftd({"key"}).out, AllOf(HasSubstr("slow layer"), HasSubstr("in force")));
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_TRUE(
      arrives(nats_, {"cache", "acl_user/moving", "credentials.rotated", "auto-applied", "changed", "passwords"}));
  refresh();
  EXPECT_EQ(events_about("moving"), 1);
  EXPECT_EQ(events_about("steady"), 0);
  ASSERT_EQ(agent_.stop(), 0);
  ASSERT_NO_FATAL_FAILURE(start());
  refresh();
  EXPECT_EQ(events_about("moving"), 1);
  EXPECT_EQ(events_about("steady"), 0);
}

TEST_F(RotatedKeyLine, KeySaysWhatItIsAndTellsNothingOfIt) {
  ASSERT_NO_FATAL_FAILURE(start());
  const Output before = driftd({"key"});
  EXPECT_EQ(before.code, 0) << before.err;
  EXPECT_THAT(before.out,
              AllOf(HasSubstr(key_file()), HasSubstr("mode 0600"), HasSubstr("in force"), Not(HasSubstr("layer"))));
  ASSERT_EQ(agent_.stop(), 0);
  ASSERT_EQ(driftd({"key", "rotate"}).code, 0);
  const Output after = driftd({"key"});
  EXPECT_THAT(after.out, AllOf(HasSubstr("layer"), HasSubstr("in force")));
  std::istringstream words(read_file(key_file()));
  for (std::string word; words >> word;) {
    if (word.size() != 64) continue;
    EXPECT_THAT(after.out + before.out, Not(HasSubstr(word)));
  }
}

TEST_F(RotatedKeyLine, RecordOfBeforeStillCompares) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_EQ(agent_.stop(), 0);
  const std::string record = dir_.file("base.json");
  const std::map<std::string, std::string> env{{"REDIS_PASSWORD", "redis-canary"}};
  const auto once = [&](const char* flag) {
    return run({Agent::binary(), "--config", agent_.config(), "once", flag, record}, env);
  };
  ASSERT_EQ(once("--record").code, 0);
  ASSERT_EQ(driftd({"key", "rotate"}).code, 0);
  for (const bool slow : {false, true}) {
    if (slow) {
      ASSERT_EQ(driftd({"key", "rotate", "--slow"}).code, 0);
    }
    const Output equal = once("--baseline");
    EXPECT_EQ(equal.code, 0) << equal.out << equal.err;
  }
  set_password("moving", "new-canary");
  const Output changed = once("--baseline");
  EXPECT_EQ(changed.code, 1) << changed.out << changed.err;
  EXPECT_THAT(changed.out, AllOf(HasSubstr("acl_user/moving"), Not(HasSubstr("acl_user/steady"))));
}

}  // namespace
}  // namespace driftd::test
