// SPDX-License-Identifier: Apache-2.0
// The real resolver beside a real agent and a real Redis: an init container, and a sidecar over rotations and restarts.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <fstream>

#include "support/agent.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

int occurrences(const std::string& text, const std::string& part) {
  int out = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++out;
  return out;
}

class ResolverOfAgent : public testing::Test {
 protected:
  ResolverOfAgent() {
    redis_.grant_readme("driftd-canary");
    secret("monitor", "driftd-canary");
    secret("password", "canary-0");
    redis_.command({"ACL", "SETUSER", "app", "on", ">canary-0", "~*", "+@all"});
  }
  void secret(const std::string& name, const std::string& text) const {
    dir_.write(name + ".new", text + "\n");
    fs::permissions(dir_.file(name + ".new"), fs::perms(0600));
    fs::rename(dir_.file(name + ".new"), dir_.file(name));
  }
  Agent agent(const std::string& resolve = "") const {
    return Agent(dir_,
                 "defaults:\n  interval: 300ms\nbackends:\n  - name: orders-cache\n    provider: redis\n"
                 "    settings: { address: \"" +
                     redis_.address() + "\", username: driftd, password: \"${file:" + dir_.file("monitor") +
                     "}\" }\n    credentials: { username: app, password: \"${file:" + dir_.file("password") +
                     "}\" }\ngrpc:\n  socket: " + dir_.file("grpc.sock") + "\n" + resolve);
  }
  std::vector<std::string> command(std::vector<std::string> more = {}) const {
    std::vector<std::string> out = {Agent::build("bin/driftd-resolver"), "--agent", "unix:" + dir_.file("grpc.sock"),
                                    "--output", output()};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::string output() const { return dir_.file("backends.json"); }
  json file() const {
    std::ifstream in(output());
    return json::parse(in, nullptr, false);
  }
  std::string password_in_file() const {
    const json all = file();
    return all.is_object() ? all.value(json::json_pointer("/state_store/config/password"), "") : "";
  }

  TempDir dir_;
  RedisServer redis_;
};

TEST_F(ResolverOfAgent, TheInitContainerWritesTheFileOnceTheAgentIsThere) {
  const std::string log = dir_.file("resolver.log");
  Child resolver(command({"--timeout", "60s"}),
                 {.log = log, .env = {{"BACKEND_BINDINGS", "state_store=orders-cache"}}});
  ASSERT_TRUE(eventually([&] { return read_file(log).find("failed to bind slot state_store") != std::string::npos; }));
  EXPECT_FALSE(fs::exists(output())) << "no file while a required binding is missing";
  Agent agent = this->agent();
  agent.start();
  ASSERT_EQ(resolver.wait(seconds(60)), 0) << read_file(log) << agent.log();
  const json slot = file()["state_store"];
  EXPECT_EQ(slot["type"], "redis");
  EXPECT_EQ(slot["config"]["host"].get<std::string>() + ":" + std::to_string(slot["config"]["port"].get<int>()),
            redis_.address());
  EXPECT_EQ(slot["config"]["username"], "app");
  EXPECT_EQ(slot["config"]["password"], "canary-0") << "the resolver read it, without the agent's right `resolve`";
  struct stat found {};
  ASSERT_EQ(::stat(output().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0400U);
  EXPECT_THAT(read_file(log), Not(HasSubstr("canary")));
  EXPECT_EQ(agent.stop(), 0);
}

TEST_F(ResolverOfAgent, WhatIsMissingIsSaidAndOptionalBindingsAreLeftOut) {
  Agent agent = this->agent();
  agent.start();
  const auto missing =
      run(command({"--timeout", "1s"}), {{"BACKEND_BINDINGS", "state_store=orders-cache,events=nothing"}});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("failed to bind slot events: backend nothing"));
  EXPECT_THAT(missing.err, HasSubstr("was not written: not every required binding was there within 1 s"));
  EXPECT_FALSE(fs::exists(output()));
  const auto optional =
      run(command({"--timeout", "20s"}),
          {{"BACKEND_BINDINGS", "{state_store: orders-cache, events: {backendRef: nothing, required: false}}"}});
  EXPECT_EQ(optional.code, 0) << optional.err;
  EXPECT_THAT(optional.err, HasSubstr("failed to bind slot events"));
  EXPECT_EQ(file().size(), 1U);
  fs::remove(dir_.file("password"));
  const auto unreadable = run(command({"--timeout", "1s"}), {{"BACKEND_BINDINGS", "state_store=orders-cache"}});
  EXPECT_EQ(unreadable.code, 1);
  EXPECT_THAT(unreadable.err, HasSubstr("failed to bind slot state_store"));
  EXPECT_EQ(password_in_file(), "canary-0") << "the former file stays";
  const auto usage = run({Agent::build("bin/driftd-resolver")}, {{"BACKEND_BINDINGS", "state_store=orders-cache"}});
  EXPECT_EQ(usage.code, 2);
  EXPECT_THAT(usage.err, HasSubstr("say where the agent is"));
  EXPECT_THAT(missing.err + optional.err + unreadable.err, Not(HasSubstr("canary")));
  EXPECT_EQ(agent.stop(), 0);
}

TEST_F(ResolverOfAgent, TheSidecarFollowsRotationsAndARestartOfTheAgent) {
  Agent agent =
      this->agent("resolve:\n  grants: [{ uid: " + std::to_string(::getuid()) + ", backends: [orders-cache] }]\n");
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"orders-cache"}); }, seconds(60))) << agent.log();
  const std::string log = dir_.file("resolver.log");
  // The interval is longer than the test: what brings the rotation is an event of the agent.
  Child resolver(command({"--follow", "--resolve-by", "agent", "--interval", "10m", "--log-level", "debug"}),
                 {.log = log, .env = {{"BACKEND_BINDINGS", "state_store=orders-cache"}}});
  ASSERT_TRUE(eventually([&] { return password_in_file() == "canary-0"; }, seconds(30))) << read_file(log);
  const auto events = [&] { return occurrences(read_file(log), "driftd's agent reports events"); };
  ASSERT_TRUE(eventually([&] { return events() > 0; }, seconds(30))) << "the stream stands\n" << read_file(log);
  const int before = events();
  redis_.command({"ACL", "SETUSER", "app", "on", ">canary-1", "~*", "+@all"});
  ASSERT_TRUE(eventually([&] { return events() > before; }, seconds(30))) << read_file(log) << agent.log();
  secret("password", "canary-1");  // a mounted Secret follows after the event
  ASSERT_TRUE(eventually([&] { return password_in_file() == "canary-1"; }, seconds(30)))
      << read_file(log) << agent.log();
  ASSERT_EQ(agent.stop(), 0);
  ASSERT_TRUE(
      eventually([&] { return read_file(log).find("events of driftd's agent at") != std::string::npos; }, seconds(30)));
  EXPECT_EQ(password_in_file(), "canary-1") << "the last good file stays while the agent is away";
  secret("password", "canary-2");
  agent.start();
  ASSERT_TRUE(eventually([&] { return password_in_file() == "canary-2"; }, seconds(60)))
      << read_file(log) << agent.log();
  resolver.signal(SIGTERM);
  EXPECT_EQ(resolver.wait(seconds(10)), 0) << read_file(log);
  EXPECT_EQ(password_in_file(), "canary-2");
  EXPECT_THAT(read_file(log), Not(HasSubstr("canary")));
  EXPECT_EQ(agent.stop(), 0);
}

/// Without the agent's rights: a mounted file that changes is seen with the next interval, and a file that somebody
/// removed is written again.
TEST_F(ResolverOfAgent, TheSidecarReadsItsOwnFilesAgain) {
  Agent agent = this->agent();
  agent.start();
  const std::string log = dir_.file("resolver.log");
  Child resolver(command({"--follow", "--interval", "300ms"}),
                 {.log = log, .env = {{"BACKEND_BINDINGS", "state_store=orders-cache"}}});
  ASSERT_TRUE(eventually([&] { return password_in_file() == "canary-0"; }, seconds(30))) << read_file(log);
  ASSERT_EQ(agent.stop(), 0);
  secret("password", "canary-1");
  ASSERT_TRUE(eventually([&] { return password_in_file() == "canary-1"; }, seconds(30)))
      << "the application's own rights need no agent\n"
      << read_file(log);
  EXPECT_THAT(read_file(log), HasSubstr("driftd's agent does not answer; the file keeps what it said last"));
  fs::remove(output());
  ASSERT_TRUE(eventually([&] { return password_in_file() == "canary-1"; }, seconds(30))) << read_file(log);
  resolver.signal(SIGTERM);
  EXPECT_EQ(resolver.wait(seconds(10)), 0) << read_file(log);
}

/// A sidecar that starts again goes on with its file: a slot that cannot be resolved now stays in it.
TEST_F(ResolverOfAgent, ASidecarThatStartsWhileTheAgentIsAwayKeepsWhatItsFileHas) {
  Agent agent = this->agent();
  agent.start();
  const std::string log = dir_.file("resolver.log");
  const std::map<std::string, std::string> bindings = {
      {"BACKEND_BINDINGS",
       "{events: {service: \"127.0.0.1:9092\"}, state_store: {backendRef: orders-cache, required: "
       "false}}"}};
  const auto sidecar = [&] {
    return Child(command({"--follow", "--interval", "300ms"}), {.log = log, .env = bindings});
  };
  Child first = sidecar();
  ASSERT_TRUE(eventually([&] { return password_in_file() == "canary-0"; }, seconds(30))) << read_file(log);
  first.signal(SIGTERM);
  ASSERT_EQ(first.wait(seconds(10)), 0);
  ASSERT_EQ(agent.stop(), 0);
  fs::remove(log);
  Child second = sidecar();
  ASSERT_TRUE(eventually([&] { return read_file(log).find("failed to bind slot state_store") != std::string::npos; },
                         seconds(30)))
      << read_file(log);
  EXPECT_EQ(occurrences(read_file(log), "the file keeps what is known of it"), 1) << read_file(log);
  second.signal(SIGTERM);  // after the pass that failed, which would have written
  EXPECT_EQ(second.wait(seconds(10)), 0);
  EXPECT_EQ(password_in_file(), "canary-0") << read_file(log);
  EXPECT_EQ(file().size(), 2U);
}

}  // namespace
}  // namespace driftd::test
