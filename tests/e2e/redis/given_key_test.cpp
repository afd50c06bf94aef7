// SPDX-License-Identifier: Apache-2.0
// The configuration names the file of the installation's key, here a systemd credential. Nothing that the agent writes
// contains the key.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/digest.hpp"
#include "support/agent.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class GivenKeyLine : public testing::Test {
 protected:
  GivenKeyLine() {
    server_.grant_readme("redis-canary");
    for (const char* user : {"steady", "moving"})
      server_.command({"ACL", "SETUSER", user, "on", ">old-canary", "~app:*", "+get"});
    fs::create_directory(dir_.file("credentials"));
  }
  /// Adds agent.installation_key to the configuration.
  void name_key() {
    std::string config = read_file(agent_.config());
    config.insert(config.find("  data_dir:"), "  installation_key: \"${credential:driftd.key}\"\n");
    std::ofstream(agent_.config()) << config;
  }
  void write_key(const std::string& text) const { std::ofstream(key_, std::ios::binary) << text; }
  Output driftd(std::vector<std::string> words) {
    words.insert(words.begin(), {"--config", agent_.config()});
    Output out = agent_.cli(std::move(words));
    output_ += out.out + out.err;
    return out;
  }
  void start() {
    agent_.start();
    ASSERT_TRUE(eventually([&] { return agent_.established({"cache"}); }, std::chrono::seconds(60))) << agent_.log();
  }
  void stop() {
    output_ += agent_.log();
    for (const auto* words : {"status", "backends", "audit"}) {
      for (const auto* format : {"json", "table"}) driftd({words, "--output", format});
    }
    ASSERT_EQ(agent_.stop(), 0);
    output_ += agent_.log();
  }
  /// Starts an agent that must refuse, and returns its output.
  Output refused() {
    Output out = run({Agent::binary(), "run", "--config", agent_.config()}, env_);
    output_ += out.out + out.err;
    return out;
  }
  bool has_event_about(const std::string& user) const {
    return read_file(dir_.file("events.jsonl")).find("acl_user/" + user) != std::string::npos;
  }
  /// Returns the bytes of each file in data_dir.
  std::map<std::string, std::string> store_files() const {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::directory_iterator(agent_.data_dir())) {
      const std::string name = entry.path().filename();
      std::string bytes = read_file(entry.path());
      // A reader of the store makes them and cannot remove them.
      const bool of_a_reader = name.ends_with("-shm") || (name.ends_with("-wal") && bytes.empty());
      if (name != "lock" && !of_a_reader) out[name] = std::move(bytes);
    }
    return out;
  }
  static std::map<std::string, std::string> digests_of(const std::map<std::string, std::string>& files) {
    std::map<std::string, std::string> out;
    for (const auto& [name, bytes] : files)
      out[name] = std::to_string(bytes.size()) + " bytes, " + to_hex(sha256(bytes));
    return out;
  }
  /// Returns the secret parts of an installation key, each as hex text and as bytes.
  static std::vector<std::string> secrets_of(const std::string& key_text) {
    std::vector<std::string> out;
    std::istringstream words(key_text);
    for (std::string word; words >> word;) {
      if (word.size() != 64) continue;
      out.push_back(word);
      std::string bytes;
      for (std::size_t i = 0; i < 64; i += 2)
        bytes.push_back(static_cast<char>(std::stoi(word.substr(i, 2), nullptr, 16)));
      out.push_back(bytes);
    }
    return out;
  }
  void expect_nowhere(const std::string& key_text) {
    const auto secrets = secrets_of(key_text);
    ASSERT_GE(secrets.size(), 4U);
    auto files = store_files();
    files["the output of all commands"] = output_;
    for (const auto* name : {"b.db", "events.jsonl"}) {
      if (fs::exists(dir_.file(name))) files[name] = read_file(dir_.file(name));
    }
    for (const auto& [name, bytes] : files) {
      EXPECT_FALSE(name.starts_with("installation.key"));
      for (const auto& secret : secrets) EXPECT_EQ(bytes.find(secret), std::string::npos) << name;
    }
  }

  TempDir dir_;
  RedisServer server_;
  const std::string key_ = dir_.file("credentials/driftd.key"), next_ = dir_.file("next.key");
  const std::map<std::string, std::string> env_{{"REDIS_PASSWORD", "redis-canary"},
                                                {"CREDENTIALS_DIRECTORY", dir_.file("credentials")}};
  Agent agent_{
      dir_,
      "defaults:\n  interval: 200ms\nbackends:\n  - name: cache\n    provider: redis\n    settings: { address: \"" +
          server_.address() + "\", username: driftd, password: \"${env:REDIS_PASSWORD}\" }\n" +
          "sinks:\n  out: { type: file, path: " + dir_.file("events.jsonl") + " }\n",
      env_};
  std::string output_;  ///< of every command and every start
};

TEST_F(GivenKeyLine, NothingOfItIsWrittenAndARotationHidesNothing) {
  name_key();
  const Output without = refused();
  EXPECT_EQ(without.code, 78);
  EXPECT_THAT(without.err,
              AllOf(HasSubstr("driftd.yaml:3:21"), HasSubstr("No such file"), HasSubstr("driftd key new --out")));
  EXPECT_FALSE(fs::exists(agent_.data_dir())) << "no key is made if the configuration names one";
  ASSERT_EQ(driftd({"key", "new", "--out", key_}).code, 0);
  EXPECT_EQ(driftd({"key", "new", "--out", key_}).code, 69) << "a key must not be replaced";
  EXPECT_EQ(driftd({"validate"}).code, 0);
  ASSERT_NO_FATAL_FAILURE(start());
  const Output next = driftd({"key", "rotate", "--out", next_});  // does not change the store, so the agent may run
  ASSERT_EQ(next.code, 0) << next.err;
  EXPECT_THAT(next.out, AllOf(HasSubstr("${credential:driftd.key}"), HasSubstr("nothing has changed yet")));
  ASSERT_NO_FATAL_FAILURE(stop());
  const std::string former = read_file(key_);
  expect_nowhere(former);
  fs::rename(next_, key_);
  server_.command({"ACL", "SETUSER", "moving", "resetpass", ">new-canary"});
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_TRUE(eventually([&] { return has_event_about("moving"); })) << agent_.log();
  EXPECT_FALSE(has_event_about("steady"));
  EXPECT_THAT(driftd({"key"}).out,
              AllOf(HasSubstr("layer"), HasSubstr("in force"), HasSubstr("${credential:driftd.key}"), HasSubstr(key_)));
  EXPECT_EQ(driftd({"backup", dir_.file("b.db"), "--with-key"}).code, 2);
  const Output backup = driftd({"backup", dir_.file("b.db")});
  EXPECT_THAT(backup.out, HasSubstr("it needs the key of ${credential:driftd.key}"));
  ASSERT_NO_FATAL_FAILURE(stop());
  ASSERT_EQ(driftd({"restore", dir_.file("b.db")}).code, 0);
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(stop());
  EXPECT_FALSE(has_event_about("steady"));
  expect_nowhere(read_file(key_));

  const auto before = store_files();
  write_key(former);
  const Output older = refused();
  EXPECT_EQ(older.code, 69);
  EXPECT_THAT(older.err, AllOf(HasSubstr("is from before a rotation"), HasSubstr("${credential:driftd.key}")));
  EXPECT_THAT(driftd({"validate"}).err, HasSubstr("is from before a rotation"));
  EXPECT_THAT(driftd({"key", "rotate", "--out", next_}).err, HasSubstr("is from before a rotation"));
  EXPECT_THAT(driftd({"restore", dir_.file("b.db")}).err, HasSubstr("is from before a rotation"));
  EXPECT_FALSE(fs::exists(next_));
  EXPECT_EQ(digests_of(store_files()), digests_of(before)) << "a refused start wrote something";
}

TEST_F(GivenKeyLine, AKeyThatIsNoneOrThatOthersMayWriteStartsNothing) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(stop());
  fs::rename(agent_.data_dir() + "/installation.key", key_);
  name_key();
  const std::string whole = read_file(key_);
  std::string flipped = whole;
  flipped.replace(flipped.find("\nstore ") + 20, 2, "zz");
  const auto before = store_files();
  for (const std::string& bad_key :
       {whole.substr(0, whole.size() / 2), flipped, whole + "more\n", std::string("hello"), whole + whole}) {
    write_key(bad_key);
    const Output damaged = refused(), checked = driftd({"validate"}), shown = driftd({"key"});
    EXPECT_EQ(damaged.code, 69);
    EXPECT_EQ(checked.code, 78);
    for (const auto& text : {damaged.err, checked.err, shown.err}) {
      EXPECT_THAT(text, AllOf(HasSubstr("driftd.yaml:3"),
                              HasSubstr("${credential:driftd.key} names is not an installation key"),
                              HasSubstr("put the copy of the key")));
    }
  }
  write_key(whole);
  ::chmod(key_.c_str(), 0622);
  EXPECT_THAT(refused().err, AllOf(HasSubstr("others may write it"), HasSubstr("driftd.yaml:3:21")));
  ::chmod(key_.c_str(), 0600);
  EXPECT_EQ(digests_of(store_files()), digests_of(before));
  ASSERT_NO_FATAL_FAILURE(start());
  server_.command({"ACL", "SETUSER", "moving", "resetpass", ">new-canary"});
  EXPECT_TRUE(eventually([&] { return has_event_about("moving"); })) << agent_.log();
  EXPECT_FALSE(has_event_about("steady")) << "the moved key is still the same key";
  ASSERT_NO_FATAL_FAILURE(stop());
  expect_nowhere(whole);
}

TEST_F(GivenKeyLine, CommandsBesideTheServiceTakeTheFileItself) {
  ASSERT_EQ(driftd({"key", "new", "--out", dir_.file("kept.key")}).code, 0);
  fs::copy(dir_.file("kept.key"), key_);
  name_key();
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(stop());
  const auto alone = [&](std::vector<std::string> words) {  // as in an operator's shell, without $CREDENTIALS_DIRECTORY
    words.insert(words.begin(), {Agent::binary(), "--config", agent_.config()});
    Output out = run(words, {{"REDIS_PASSWORD", "redis-canary"}});
    output_ += out.out + out.err;
    return out;
  };
  EXPECT_THAT(alone({"key"}).err, AllOf(HasSubstr("$CREDENTIALS_DIRECTORY is not set"), HasSubstr("--key FILE")));
  EXPECT_THAT(alone({"key", "--key", dir_.file("kept.key")}).out, AllOf(HasSubstr("in force"), HasSubstr("kept.key")));
  EXPECT_EQ(alone({"key", "rotate", "--key", dir_.file("kept.key")}).code, 2);
  EXPECT_EQ(alone({"key", "rotate", "--key", dir_.file("kept.key"), "--out", agent_.data_dir() + "/next.key"}).code, 2);
  EXPECT_EQ(alone({"key", "rotate", "--key", dir_.file("kept.key"), "--out", next_}).code, 0);
  EXPECT_THAT(alone({"key", "--key", next_}).out, HasSubstr("the next start rewrites the store"));
  ASSERT_EQ(alone({"backup", dir_.file("b.db")}).code, 0);
  EXPECT_THAT(alone({"restore", dir_.file("b.db")}).out, HasSubstr("shows at the start"));
  EXPECT_THAT(alone({"restore", dir_.file("b.db"), "--key", next_}).out, Not(HasSubstr("shows at the start")));
  expect_nowhere(read_file(next_));
}

TEST_F(GivenKeyLine, ARecordIsMadeAndReadUnderIt) {
  ASSERT_EQ(driftd({"key", "new", "--out", key_}).code, 0);
  name_key();
  const std::string record = dir_.file("base.json");
  ASSERT_EQ(driftd({"once", "--record", record}).code, 0);
  EXPECT_FALSE(fs::exists(record + ".key"))
      << "a record needs no key file of its own if the configuration names the key";
  EXPECT_EQ(driftd({"once", "--baseline", record}).code, 0);
  server_.command({"ACL", "SETUSER", "moving", "resetpass", ">new-canary"});
  const Output changed = driftd({"once", "--baseline", record});
  EXPECT_EQ(changed.code, 1) << changed.err;
  EXPECT_THAT(changed.out, AllOf(HasSubstr("acl_user/moving"), Not(HasSubstr("acl_user/steady"))));
  write_key("nothing");
  EXPECT_THAT(driftd({"once", "--baseline", record}).err, HasSubstr("is not an installation key"));
}

}  // namespace
}  // namespace driftd::test
