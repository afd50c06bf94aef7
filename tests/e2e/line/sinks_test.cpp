// SPDX-License-Identifier: Apache-2.0
// Sinks that are added to and removed from the configuration: no event is lost, and the agent names the sinks whose
// events are still pending.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "world.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;

class SinksOfTheConfig : public testing::Test {
 protected:
  SinksOfTheConfig() : state_(dir_.write("infra/terraform.tfstate", tfstate(7, 3))) {}
  std::string sinks(const std::vector<std::string>& names) const {
    std::string out = "sinks:\n";
    for (const auto& name : names) out += "  " + name + ": { type: file, path: " + file(name) + " }\n";
    return out;
  }
  std::string file(const std::string& name) const { return dir_.file(name + ".jsonl"); }
  Agent agent(const std::vector<std::string>& names) const {
    return Agent(dir_, "defaults:\n  interval: 200ms\nbackends:\n" + terraform_backend(state_) + sinks(names));
  }
  /// Returns the sink in the answer of `driftd status`. Null if it is not there.
  static nlohmann::json sink(const Agent& agent, const std::string& name) {
    const auto status = agent.ask({"status"});
    if (!status.is_object() || !status.contains("sinks")) return {};
    for (const auto& one : status["sinks"]) {
      if (one["name"] == name) return one;
    }
    return {};
  }
  /// Replaces a part of the agent's configuration.
  static void rewrite(Agent& agent, const std::string& from, const std::string& to) {
    std::string text = read_file(agent.config());
    text.replace(text.find(from), from.size(), to);
    std::ofstream(agent.config()) << text;
  }
  TempDir dir_;
  std::string state_;
};

TEST_F(SinksOfTheConfig, AReloadStartsASinkThatIsNewAndTakingItBackKeepsTheNextStart) {
  Agent a = agent({"old"});
  a.start();
  ASSERT_TRUE(eventually([&] { return a.established({"platform"}); }, std::chrono::seconds(40))) << a.log();
  rewrite(a, sinks({"old"}), sinks({"old", "fresh"}));
  const Output reloaded = run({Agent::binary(), "reload", "--config", a.config()});
  ASSERT_EQ(reloaded.code, 0) << reloaded.err;
  replace_file(state_, tfstate(8, 9));
  EXPECT_TRUE(eventually([&] { return read_file(file("fresh")).find("config.updated") != std::string::npos; }))
      << a.log();
  EXPECT_TRUE(eventually([&] { return read_file(file("old")).find("config.updated") != std::string::npos; }))
      << a.log();
  EXPECT_EQ(a.stop(), 0);
  rewrite(a, sinks({"old", "fresh"}), sinks({"old"}));
  a.start();
  EXPECT_TRUE(eventually([&] { return a.backend("platform").has_value(); }, std::chrono::seconds(40))) << a.log();
}

/// A reload waits a moment for a secret file that was just written. The stop comes while it waits.
TEST_F(SinksOfTheConfig, AStopDuringAReloadEndsTheAgent) {
  const std::string secret = dir_.write("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  Agent a(dir_, "defaults:\n  interval: 200ms\nbackends:\n" + terraform_backend(state_) +
                    "sinks:\n  hook: { type: webhook, url: \"http://127.0.0.1:9/in\", allow_http_loopback: true, "
                    "secret: \"${file:" +
                    secret + "}\" }\n");
  a.start();
  ASSERT_TRUE(eventually([&] { return a.established({"platform"}); }, std::chrono::seconds(40))) << a.log();
  replace_file(secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  a.signal(SIGHUP);
  ASSERT_TRUE(eventually([&] { return a.log().find("reloading ") != std::string::npos; })) << a.log();
  EXPECT_EQ(a.stop(), 0) << a.log();
  EXPECT_EQ(a.log().find("\"reload: "), std::string::npos)
      << "an agent that stops must not finish a reload: " << a.log();
}

TEST_F(SinksOfTheConfig, ASinkThatAReloadBringsGetsNoValuesWhereItIsToGetNone) {
  Agent a = agent({"old"});
  a.start();
  ASSERT_TRUE(eventually([&] { return a.established({"platform"}); }, std::chrono::seconds(40))) << a.log();
  std::string wanted = sinks({"old", "bare"});
  const auto path = wanted.find(file("bare"));
  wanted.insert(path + file("bare").size(), ", events: digests_only");
  rewrite(a, sinks({"old"}), wanted);
  ASSERT_EQ(run({Agent::binary(), "reload", "--config", a.config()}).code, 0);
  replace_file(state_, tfstate(8, 9));
  EXPECT_TRUE(eventually([&] { return read_file(file("old")).find("config.updated") != std::string::npos; }))
      << a.log();
  EXPECT_TRUE(eventually([&] { return read_file(file("bare")).find("config.updated") != std::string::npos; }))
      << a.log();
  EXPECT_EQ(read_file(file("old")).find("digest:"), std::string::npos);
  EXPECT_NE(read_file(file("bare")).find("digest:"), std::string::npos) << read_file(file("bare"));
}

TEST_F(SinksOfTheConfig, ASinkThatLeftWithPendingEventsIsAnOrphanUntilItComesBack) {
  Agent a = agent({"log", "stuck"});
  std::filesystem::create_directory(file("stuck"));  // a sink that cannot write keeps its events pending
  a.start();
  ASSERT_TRUE(eventually([&] { return a.established({"platform"}); }, std::chrono::seconds(40))) << a.log();
  replace_file(state_, tfstate(8, 9));
  ASSERT_TRUE(eventually([&] { return read_file(file("log")).find("config.updated") != std::string::npos; }))
      << a.log();
  EXPECT_EQ(a.stop(), 0);
  rewrite(a, sinks({"log", "stuck"}), sinks({"log"}));
  const auto validate = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {Agent::binary(), "--config", a.config(), "validate"});
    return run(more);
  };
  const Output warned = validate({}), strict = validate({"--strict"});
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_THAT(warned.err, HasSubstr("sink 'stuck' is not in this file any more, and the store still has "));
  EXPECT_EQ(strict.code, 78);
  EXPECT_THAT(strict.err, HasSubstr("delivery.drop_pending"));
  a.start();
  EXPECT_TRUE(eventually([&] { return sink(a, "log").is_object(); }, std::chrono::seconds(40))) << a.log();
  EXPECT_THAT(validate({}).err, HasSubstr("sink 'stuck'")) << "also while the agent runs";
  ASSERT_TRUE(eventually([&] { return sink(a, "stuck").is_object(); }, std::chrono::seconds(40))) << a.log();
  EXPECT_THAT(sink(a, "stuck")["state"].get<std::string>(), HasSubstr("orphaned: sink stuck still has"));
  EXPECT_THAT(sink(a, "stuck")["state"].get<std::string>(), HasSubstr("delivery.drop_pending"));
  EXPECT_THAT(a.log(), HasSubstr("orphaned sink: sink stuck still has"));
  std::filesystem::remove(file("stuck"));
  rewrite(a, sinks({"log"}), sinks({"log", "stuck"}));
  EXPECT_EQ(run({Agent::binary(), "reload", "--config", a.config()}).code, 0);
  EXPECT_TRUE(eventually([&] { return read_file(file("stuck")).find("config.updated") != std::string::npos; }))
      << a.log();
}

}  // namespace
}  // namespace driftd::test
