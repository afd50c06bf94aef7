// SPDX-License-Identifier: Apache-2.0
// Plugin files of a running agent: missing, added, upgraded, broken, parked, pinned.
#include <filesystem>

#include "world.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class PluginLine : public testing::Test {
 protected:
  PluginLine() : folder_(dir_.file("plugins")), state_(dir_.write("infra/terraform.tfstate", tfstate(7, 3))) {}

  void configure(const std::string& backend) {
    agent_ = std::make_unique<Agent>(dir_,
                                     "defaults:\n  interval: 200ms\nbackends:\n" + terraform_backend(state_) +
                                         "    interval: 1s\n" + backend + "sinks:\n  desk: { type: notifications }\n",
                                     std::map<std::string, std::string>{},
                                     std::vector<std::string>{Agent::build("providers"), folder_});
  }
  void start() {
    agent_->start();
    ASSERT_TRUE(eventually([&] { return agent_->established({"platform"}); }, seconds(40))) << agent_->log();
  }
  static std::string lives(const std::string& version) { return Agent::build("tests/lives/" + version + ".so"); }
  void install(const std::string& version) {
    fs::create_directories(folder_);
    fs::copy_file(lives(version), folder_ + "/new", fs::copy_options::overwrite_existing);
    fs::rename(folder_ + "/new", folder_ + "/lives.so");
  }
  std::string state() const {
    const auto row = agent_->backend("mine");
    return row ? row->value("state", "") : "";
  }
  nlohmann::json worker() const { return agent_->backend("mine")->at("worker"); }
  std::string ls() const { return agent_->cli({"plugin", "ls"}).out; }
  Output offline(std::vector<std::string> words) const {
    words.insert(words.begin(), {Agent::binary(), "--config", agent_->config()});
    return run(words);
  }

  TempDir dir_;
  std::string folder_, state_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(PluginLine, FilesAreTakenUpUpgradedAndRefusedWithoutARestart) {
  configure("  - { name: mine, provider: lives }\n");
  EXPECT_EQ(offline({"validate"}).code, 0) << "the agent starts without the plugin";
  EXPECT_EQ(offline({"validate", "--strict"}).code, 78) << "in a pipeline a missing plugin is an error";
  EXPECT_THAT(offline({"validate"}).err, HasSubstr("no plugin for provider 'lives'"));
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(state(), "no plugin");
  EXPECT_THAT(ls(), AllOf(HasSubstr("no plugin for provider `lives`"), HasSubstr("put its .so into")));

  install("v1");
  ASSERT_TRUE(eventually([&] { return agent_->established({"mine"}); }, seconds(40))) << agent_->log();
  EXPECT_EQ(worker().at("version"), "1.0");

  install("v2");
  ASSERT_TRUE(
      eventually([&] { return agent_->backend("mine")->at("coverage").size() == 2 && agent_->established({"mine"}); },
                 seconds(40)))
      << agent_->backend("mine")->dump();
  EXPECT_THAT(ls(), HasSubstr("2.0"));
  EXPECT_THAT(agent_->cli({"plugin", "describe", "lives"}).out,
              AllOf(HasSubstr("kind two"), HasSubstr("driftd.watch/1")));

  install("describe_breaks");
  ASSERT_TRUE(eventually([&] { return ls().find("stays in use") != std::string::npos; }, seconds(40))) << ls();
  EXPECT_THAT(ls(), AllOf(HasSubstr("signal 6"), HasSubstr("version 2.0 stays in use")));
  EXPECT_TRUE(eventually([&] {
    return agent_->ask({"events"}).dump().find("upgrade_refused") != std::string::npos ||
           agent_->cli({"events"}).out.find("upgrade_refused") != std::string::npos;
  }));
  const auto before = *agent_->backend("mine");  // the old version still refreshes without a failure
  EXPECT_TRUE(eventually(
      [&] { return agent_->backend("mine")->at("cycles").get<int>() >= before.at("cycles").get<int>() + 2; }));
  EXPECT_EQ(agent_->backend("mine")->at("failures"), before.at("failures"));
  EXPECT_EQ(worker().at("version"), "2.0");
  EXPECT_EQ(agent_->backend("platform")->at("failures").get<int>(), 0) << "the other backend had no failure";
  EXPECT_EQ(agent_->stop(), 0) << agent_->log();
}

TEST_F(PluginLine, AProviderMayBeAPathAndItsTypeIsThePlugins) {
  install("v1");
  fs::rename(folder_ + "/lives.so", dir_.file("acme-1.so"));
  fs::remove(folder_);
  configure("  - { name: mine, provider: ./" + fs::path(dir_.file("acme-1.so")).filename().string() + " }\n");
  const Output valid = offline({"validate"});
  EXPECT_EQ(valid.code, 0) << valid.err;
  EXPECT_THAT(valid.err, AllOf(HasSubstr("warning"), HasSubstr("is not there")))
      << "the folder of plugins does not exist";
  const Output once = offline({"once"});
  EXPECT_EQ(once.code, 0) << once.out << once.err;
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(eventually([&] { return agent_->established({"mine"}); }, seconds(40))) << agent_->log();
  EXPECT_EQ(agent_->backend("mine")->at("type"), "lives");
}

TEST_F(PluginLine, AParkedPluginIsNamedAndFreedByHand) {
  install("v1");
  configure("  - { name: mine, provider: lives, settings: { mode: abort } }\n");
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(eventually([&] { return worker().at("state") == "parked"; }, seconds(60))) << agent_->log();
  EXPECT_THAT(ls(), AllOf(HasSubstr("parked until"), HasSubstr("signal 6 (Aborted) in refresh")));
  ASSERT_TRUE(eventually([&] {
    return agent_->cli({"status"}).out.find("driftd plugin resume mine") != std::string::npos;
  })) << agent_->cli({"status"}).out;
  EXPECT_THAT(agent_->cli({"plugin", "resume", "platform"}).err, HasSubstr("nothing of 'platform' is parked"));
  EXPECT_EQ(agent_->cli({"plugin", "resume", "platform"}).code, 1);
  const auto restarts = worker().at("restarts").get<int>();
  EXPECT_EQ(agent_->cli({"plugin", "resume", "lives", "--reason", "fixed"}).code, 0);
  EXPECT_TRUE(eventually([&] { return worker().at("restarts").get<int>() > restarts; }));
  EXPECT_THAT(agent_->cli({"audit"}).out, AllOf(HasSubstr("resume"), HasSubstr("mine"), HasSubstr("fixed")));
}

TEST_F(PluginLine, ALockPinsWhatIsInstalledAndIsTakenUp) {
  install("v1");
  configure("  - { name: mine, provider: lives }\n");
  const Output locked = offline({"plugin", "lock"});
  ASSERT_EQ(locked.code, 0) << locked.err;
  EXPECT_THAT(locked.out, AllOf(HasSubstr("added"), HasSubstr(folder_ + "/lives.so")));
  const std::string lock = fs::path(agent_->config()).parent_path() / "driftd.lock";
  EXPECT_EQ(run({"sha256sum", "-c", "--quiet", lock}).code, 0);
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(eventually([&] { return agent_->established({"mine"}); }, seconds(40))) << agent_->log();
  EXPECT_THAT(ls(), HasSubstr("pinned"));
  install("v2");
  ASSERT_TRUE(eventually([&] { return ls().find("not the pinned ones") != std::string::npos; }, seconds(40))) << ls();
  EXPECT_EQ(worker().at("version"), "1.0");
  const Output again = offline({"plugin", "lock"});
  EXPECT_THAT(again.out, AllOf(HasSubstr("changed"), HasSubstr("unchanged")));
  EXPECT_TRUE(eventually([&] { return worker().at("version") == "2.0"; }, seconds(40))) << ls();
}

TEST_F(PluginLine, CheckRunsTheCheckerOnAnInstalledPluginByItsName) {
  install("v1");
  configure("  - { name: mine, provider: lives }\n");
  const Output by_name = offline({"plugin", "check", "lives", "--list"});
  const Output direct = run({Agent::build("bin/driftd-check"), folder_ + "/lives.so", "--list"});
  EXPECT_EQ(by_name.code, direct.code) << by_name.err;
  EXPECT_EQ(by_name.out, direct.out);
  EXPECT_THAT(direct.out, HasSubstr("binary."));
  const Output wrong = offline({"plugin", "check", "lives", "--no-such-option"});
  EXPECT_EQ(wrong.code, run({Agent::build("bin/driftd-check"), folder_ + "/lives.so", "--no-such-option"}).code);
  EXPECT_NE(wrong.code, 0);
  EXPECT_EQ(offline({"plugin", "check"}).code, 2);
}

TEST_F(PluginLine, CheckRunsNoPluginThatOthersMayWriteOrThatIsNotAsPinned) {
  install("v1");
  configure("  - { name: mine, provider: lives }\n");
  ASSERT_EQ(offline({"plugin", "lock"}).code, 0);
  EXPECT_EQ(offline({"plugin", "check", "lives", "--only", "binary.loads"}).code, 0);
  install("v2");
  const Output other = offline({"plugin", "check", "lives", "--only", "binary.loads"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("lives.so: refused, because its bytes are not those that "));
  fs::permissions(folder_ + "/lives.so", fs::perms::others_write, fs::perm_options::add);
  const Output loose = offline({"plugin", "check", "--seed", "1", folder_ + "/lives.so"});
  EXPECT_EQ(loose.code, 1);
  EXPECT_THAT(loose.err, AllOf(HasSubstr("lives.so is writable by others"), HasSubstr("`chmod o-w ")));
}

}  // namespace
}  // namespace driftd::test
