// SPDX-License-Identifier: Apache-2.0
// An agent gets the Redis password from a program. When the password changes, the agent follows without a restart, and
// no output contains it.
#include <gmock/gmock.h>
#include <signal.h>
#include <filesystem>
#include <sstream>

#include "support/agent.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

class Programs : public testing::Test {
 protected:
  Programs() {
    redis_.grant_readme("program-canary-1");
    secret("program-canary-1");
    script("cat " + dir_.file("secret"));
    agent_ = std::make_unique<Agent>(
        dir_,
        "defaults:\n  interval: 500ms\nbackends:\n  - name: cache\n    provider: redis\n    settings: "
        "{ address: \"" +
            redis_.address() + "\", username: driftd, password: '${exec:" + tool() +
            " --for \"the cache\"}' }\n  - name: open\n    provider: redis\n    settings: { address: \"" +
            open_.address() + "\" }\nsinks:\n  desk: { type: notifications }\n");
    allow("{ path: " + tool() + ", refresh: 500ms, timeout: 1s }");
  }
  std::string tool() const { return dir_.file("tool"); }
  /// Replaces the program by a shell script.
  void script(const std::string& body) const { replace("tool", "#!/bin/sh\n" + body + "\n", 0755); }
  /// Replaces the file that the program reads.
  void secret(const std::string& text) const { replace("secret", text + "\n", 0600); }
  void replace(const std::string& name, const std::string& text, unsigned mode) const {
    const std::string fresh = dir_.write(name + ".new", text);
    fs::permissions(fresh, fs::perms(mode));
    fs::rename(fresh, dir_.file(name));
  }
  /// Replaces the entries of agent.programs in the configuration.
  void allow(const std::string& entry) const {
    std::string text = read_file(agent_->config());
    const std::size_t old = text.find("  programs:");
    if (old != std::string::npos) text.erase(old, text.find('\n', old) + 1 - old);
    text.insert(text.find("admin:\n"), "  programs: [" + entry + "]\n");
    replace("driftd.yaml", text, 0600);
  }
  void start() {
    agent_->start();
    ASSERT_TRUE(eventually([&] { return agent_->established({"cache"}); }, seconds(40))) << agent_->log();
  }
  /// Returns the state and the reason of the backend's health.
  std::string health() const {
    const auto row = agent_->backend("cache");
    return row ? row->at("health").value("state", "") + ": " + row->at("health").value("reason", "")
               : "no such backend";
  }
  int worker() const { return agent_->backend("cache")->at("worker").value("pid", 0); }
  /// Returns true if an event contains `text`.
  bool has_event(const std::string& text) const {
    return agent_->cli({"events", "-o", "json"}).out.find(text) != std::string::npos;
  }
  /// Returns the number of the agent's children that ended and were not reaped.
  int zombies() const {
    const std::string zombie = ") Z " + std::to_string(agent_->pid()) + " ";  // state and parent, proc_pid_stat(5)
    int out = 0;
    for (const auto& process : fs::directory_iterator("/proc")) {
      out += read_file(process.path() / "stat").find(zombie) != std::string::npos ? 1 : 0;
    }
    return out;
  }
  /// Changes the password at the server and in the file that the program reads.
  void rotate(const std::string& password) const {
    redis_.command({"ACL", "SETUSER", "driftd", "resetpass", ">" + password});
    secret(password);
    redis_.command({"CLIENT", "KILL", "USER", "driftd"});
  }
  /// Returns the log and the output of each command that shows state.
  std::string everything() const {
    std::string out = agent_->log();
    for (const auto& command : {"drifts", "resources", "events", "backends", "queue", "status", "audit", "plugin ls"}) {
      std::vector<std::string> words;
      std::istringstream in(command);
      for (std::string word; in >> word;) words.push_back(word);
      out += agent_->cli(words).out;
      words.insert(words.end(), {"-o", "json"});
      out += agent_->cli(words).out;
    }
    out += run({"curl", "-s", "http://127.0.0.1:" + std::to_string(agent_->admin_port()) + "/metrics"}).out;
    return out;
  }
  Output driftd(std::vector<std::string> words) const {
    words.insert(words.begin(), {Agent::binary(), "--config", agent_->config()});
    return run(words);
  }

  TempDir dir_;
  RedisServer redis_, open_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(Programs, APasswordThatChangesIsFollowedWithoutARestartAndShownNowhere) {
  ASSERT_NO_FATAL_FAILURE(start());
  const int first = worker(), other_worker = agent_->backend("open")->at("worker").value("pid", 0);
  const auto cycles = [&] { return agent_->backend("cache")->at("cycles").get<int>(); };
  const int before = cycles();
  ASSERT_TRUE(eventually([&] { return cycles() >= before + 4; }));
  EXPECT_EQ(worker(), first) << "the program ran again and answered the same";
  rotate("program-canary-2");
  redis_.command({"CONFIG", "SET", "maxmemory", "64mb"});
  ASSERT_TRUE(eventually(
      [&] {
        return agent_->cli({"drifts", "-o", "json"}).out.find("maxmemory") != std::string::npos;
      },
      seconds(15)))
      << agent_->log();
  ASSERT_TRUE(eventually([&] { return health() == "up: "; })) << health();
  EXPECT_NE(worker(), first);
  EXPECT_EQ(agent_->backend("open")->at("worker").value("pid", 0), other_worker)
      << "the worker of a backend that does not use the program goes on";
  // The program fails, and its error message contains the password.
  script("cat " + dir_.file("secret") + "; echo \"cannot renew $(cat " + dir_.file("secret") + ")\" >&2; exit 7");
  ASSERT_TRUE(eventually([&] { return has_event("exited with 7: cannot renew [REDACTED]; the answer of "); }))
      << agent_->log();
  EXPECT_TRUE(has_event("program_failed")) << agent_->log();
  EXPECT_EQ(health(), "up: ") << "the last answer stays in use";
  std::string all = everything();
  EXPECT_THAT(all, HasSubstr("driftd_backend_secret_program_runs_total{backend=\"cache\",outcome=\"failed\"}"));
  EXPECT_THAT(all, HasSubstr("${exec:" + tool()));
  EXPECT_TRUE(eventually([&] { return zombies() == 0; }, seconds(5)));  // one that has just ended may not be reaped yet
  EXPECT_EQ(agent_->stop(), 0) << agent_->log();
  for (const auto& file : fs::directory_iterator(agent_->data_dir())) all += read_file(file.path());
  EXPECT_GT(all.size(), 10'000u);
  EXPECT_THAT(all, Not(HasSubstr("program-canary")));
}

TEST_F(Programs, OneThatHangsCostsItsBackendOnlyAndIsTriedAgain) {
  script("echo $$ > " + dir_.file("pid") + "; exec /bin/sleep 1000");
  agent_->start();
  ASSERT_TRUE(eventually([&] { return agent_->established({"open"}); }, seconds(40))) << agent_->log();
  ASSERT_TRUE(eventually([&] {
    return has_event("tool did not end within 1 s: killed; there is no answer of it yet");
  })) << agent_->log();
  const std::string degraded = "degraded: setting password has no value: " + tool() + " did not end within 1 s: killed";
  ASSERT_TRUE(eventually([&] { return health() == degraded; })) << health();
  EXPECT_EQ(agent_->backend("cache")->at("worker").value("state", ""), "no secret");
  script("cat " + dir_.file("secret"));
  ASSERT_TRUE(eventually([&] { return agent_->established({"cache"}); }, seconds(40))) << agent_->log();
  EXPECT_TRUE(eventually([&] { return zombies() == 0; }, seconds(5)));
  script("echo $$ > " + dir_.file("pid") + "; exec /bin/sleep 1000");
  fs::remove(dir_.file("pid"));
  ASSERT_TRUE(eventually([&] { return !read_file(dir_.file("pid")).empty(); }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(agent_->stop(), 0) << agent_->log();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  EXPECT_NE(::kill(std::stoi(read_file(dir_.file("pid"))), 0), 0) << "the program runs after the end of the agent";
}

TEST_F(Programs, WhatMayNotRunIsRefusedAtItsPlaceBeforeAnythingStarts) {
  script("touch " + dir_.file("ran"));
  const auto refused = [&](const std::string& words) {
    const Output validated = driftd({"validate"}), started = driftd({"run"});
    for (const auto* out : {&validated, &started}) {
      EXPECT_EQ(out->code, 78);
      EXPECT_THAT(out->err, HasSubstr("driftd.yaml:14:"));
      EXPECT_THAT(out->err, HasSubstr(words));
    }
  };
  fs::permissions(tool(), fs::perms(0757));
  refused("program " + tool() + " is not run, because " + tool() + " is writable by others");
  fs::permissions(tool(), fs::perms(0755));
  allow("{ path: /bin/true }");
  refused("program " + tool() + " may not run: it is not in agent.programs");
  allow("");
  refused("${exec:…} is off");
  EXPECT_FALSE(fs::exists(dir_.file("ran")));
}

TEST_F(Programs, ValidateRunsThemOnlyWhenAskedAndOnceUsesThem) {
  script("touch " + dir_.file("ran") + "; echo 'no such profile' >&2; exit 4");
  EXPECT_EQ(driftd({"validate"}).code, 0);
  EXPECT_FALSE(fs::exists(dir_.file("ran")));
  const Output tried = driftd({"validate", "--run-programs"});
  EXPECT_EQ(tried.code, 78);
  EXPECT_THAT(tried.err,
              HasSubstr("backend 'cache', setting 'password': " + tool() + " exited with 4: no such profile"));
  const Output failed = driftd({"once"});
  EXPECT_EQ(failed.code, 3) << failed.out << failed.err;
  EXPECT_THAT(failed.out, HasSubstr("setting password has no value"));
  script("cat " + dir_.file("secret"));
  EXPECT_EQ(driftd({"validate", "--run-programs"}).code, 0);
  const Output once = driftd({"once"});
  EXPECT_EQ(once.code, 0) << once.out << once.err;
}

/// Commands that hold secrets for a moment may not write a core dump either. The program reads the limits of its
/// parent.
TEST_F(Programs, EveryCommandThatHoldsSecretsWritesNoCore) {
  script("cat /proc/$PPID/limits > " + dir_.file("limits") + "; cat " + dir_.file("secret"));
  for (const std::vector<std::string>& command : {std::vector<std::string>{"validate", "--run-programs"}, {"once"}}) {
    fs::remove(dir_.file("limits"));
    (void)driftd(command);
    EXPECT_THAT(read_file(dir_.file("limits")), testing::ContainsRegex("Max core file size +0 +0 ")) << command.front();
  }
}

}  // namespace
}  // namespace driftd::test
