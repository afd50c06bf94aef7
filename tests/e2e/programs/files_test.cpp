// SPDX-License-Identifier: Apache-2.0
// An agent reads the Redis password from a file. When the password is rotated, the agent follows without a restart, and
// no output contains it.
#include <gmock/gmock.h>
#include <filesystem>

#include "support/agent.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

class SecretFiles : public testing::Test {
 protected:
  SecretFiles() {
    redis_.grant_readme("file-canary-1");
    mount("1", "file-canary-1");
    fs::create_symlink("..data/password", secret());
    dir_.write("address", redis_.address() + "\n");
    agent_ = std::make_unique<Agent>(
        dir_,
        "defaults:\n  interval: 500ms\nbackends:\n  - name: cache\n    provider: redis\n    settings: "
        "{ address: \"${file:address}\", username: driftd, password: \"${file:" +
            secret() + "}\" }\nsinks:\n  desk: { type: notifications }\n");
  }
  std::string secret() const { return dir_.file("password"); }
  /// Projects a Secret as the kubelet does: a folder for each version, and one link that is switched to the newest.
  void mount(const std::string& version, const std::string& password) const {
    const std::string folder = "..v" + version;
    fs::create_directory(dir_.file(folder));
    dir_.write(folder + "/password", password);
    fs::permissions(dir_.file(folder + "/password"), fs::perms(0600));
    fs::create_symlink(folder, dir_.file("..data_tmp"));
    fs::rename(dir_.file("..data_tmp"), dir_.file("..data"));
  }
  /// Sets the password at the server and ends the connections that used the former one.
  void set_password(const std::string& password) const {
    redis_.command({"ACL", "SETUSER", "driftd", "resetpass", ">" + password});
    redis_.command({"CLIENT", "KILL", "USER", "driftd"});
  }
  void start() {
    agent_->start();
    ASSERT_TRUE(eventually([&] { return agent_->established({"cache"}); }, seconds(40))) << agent_->log();
  }
  /// Changes a setting of the server and returns true if the agent reports it as a drift.
  bool sees(const std::string& setting, const std::string& value) const {
    redis_.command({"CONFIG", "SET", setting, value});
    return eventually(
        [&] {
          return agent_->cli({"drifts", "-o", "json"}).out.find(setting) != std::string::npos;
        },
        seconds(20));
  }
  /// Returns what is wrong with the backend's secrets. Empty if nothing is.
  std::string fault() const { return agent_->backend("cache")->at("worker").value("secret_fault", "?"); }
  std::string health() const { return agent_->backend("cache")->at("health").value("state", ""); }
  Output reload() const { return run({Agent::binary(), "reload", "--config", agent_->config()}); }

  TempDir dir_;
  RedisServer redis_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(SecretFiles, APasswordThatIsRotatedIsFollowedWithoutARestartAndShownNowhere) {
  ASSERT_NO_FATAL_FAILURE(start());
  const int first = agent_->backend("cache")->at("worker").value("pid", 0);
  set_password("file-canary-2");
  mount("2", "file-canary-2");
  ASSERT_TRUE(sees("maxmemory", "64mb")) << agent_->log();
  EXPECT_NE(agent_->backend("cache")->at("worker").value("pid", 0), first) << "the new password needs a new worker";
  ASSERT_TRUE(eventually([&] { return health() == "up"; }, seconds(20))) << agent_->log();
  EXPECT_THAT(agent_->log(), HasSubstr("setting password (" + secret() + ") changed"));
  const Output reloaded = reload();
  EXPECT_EQ(reloaded.code, 0);
  EXPECT_EQ(reloaded.err, "") << "a changed secret file must not need a restart of the agent";
  EXPECT_EQ(agent_->stop(), 0) << agent_->log();
  std::string all = agent_->log();
  for (const auto& file : fs::directory_iterator(agent_->data_dir())) all += read_file(file.path());
  EXPECT_THAT(all, Not(HasSubstr("file-canary")));
}

TEST_F(SecretFiles, OneThatIsGoneIsToldAndWhatWasReadStaysInUse) {
  ASSERT_NO_FATAL_FAILURE(start());
  fs::remove(dir_.file("..data"));
  ASSERT_TRUE(eventually([&] { return fault() != ""; })) << agent_->log();
  EXPECT_THAT(fault(),
              HasSubstr("setting password: secret file " + secret() + " cannot be read: No such file or directory"));
  EXPECT_THAT(agent_->cli({"status"}).out, HasSubstr("what was read before stays in use"));
  EXPECT_TRUE(eventually([&] {
    return agent_->cli({"events", "-o", "json"}).out.find("secret_file_failed") != std::string::npos;
  }));
  ASSERT_TRUE(sees("maxmemory", "64mb")) << agent_->log();
  EXPECT_EQ(health(), "up");
  set_password("file-canary-2");
  ASSERT_TRUE(eventually([&] { return health() != "up"; }, seconds(20)));
  mount("2", "file-canary-2");
  ASSERT_TRUE(eventually([&] { return fault() == "" && health() == "up"; }, seconds(20))) << agent_->log();
  EXPECT_TRUE(sees("maxmemory-policy", "allkeys-lru")) << agent_->log();
}

/// The plugin's schema does not mark the address as a secret, so the worker gets the value itself instead of a token.
TEST_F(SecretFiles, AnAddressInAFileIsFollowedToo) {
  ASSERT_NO_FATAL_FAILURE(start());
  dir_.write("address", "localhost:" + std::to_string(redis_.port()) + "\n");
  ASSERT_TRUE(eventually([&] {
    return agent_->log().find("setting address (" + dir_.file("address") + ") changed") != std::string::npos;
  })) << agent_->log();
  EXPECT_TRUE(sees("maxmemory", "64mb")) << agent_->log();
  EXPECT_EQ(reload().err, "");
}

}  // namespace
}  // namespace driftd::test
