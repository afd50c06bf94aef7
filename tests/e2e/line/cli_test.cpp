// SPDX-License-Identifier: Apache-2.0
// The command line beside a running agent: what it prints and its exit codes.
#include <csignal>
#include <filesystem>
#include <sstream>

#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CliLine : public testing::Test {
 protected:
  CliLine() : state_(dir_.write("infra/terraform.tfstate", tfstate(7, 3))) {}

  void run_agent(const std::string& sinks, const std::string& more = "") {
    agent_ = std::make_unique<Agent>(dir_,
                                     more + "defaults:\n  interval: 200ms\nbackends:\n" + terraform_backend(state_) +
                                         more_of_backend_ + "sinks:\n" + sinks,
                                     std::map<std::string, std::string>{{"HOOK_SECRET", "hook-canary-of-24-bytes!"}});
    agent_->start();
    ASSERT_TRUE(eventually([&] { return agent_->established({"platform"}); }, seconds(40))) << agent_->log();
  }
  /// Makes a drift and returns its id.
  std::string drift() {
    replace_file(state_, tfstate(7, 4));
    EXPECT_TRUE(eventually([&] { return agent_->rows({"drifts"}).size() == 1; })) << agent_->log();
    return agent_->rows({"drifts"}).at(0).at("id");
  }
  /// Returns the reference that a decision must name: the drift with its current value.
  std::string ref() { return agent_->rows({"drifts"}).at(0).at("ref"); }
  Output cli(std::vector<std::string> words) { return agent_->cli(std::move(words)); }

  TempDir dir_;
  std::string state_, more_of_backend_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(CliLine, DriftIsListedExplainedAndDecidedWithItsAudit) {
  ASSERT_NO_FATAL_FAILURE(run_agent("  desk: { type: notifications }\n"));
  EXPECT_EQ(cli({"drifts"}).code, 0);
  const std::string id = drift();
  const Output drifts = cli({"drifts"});
  EXPECT_EQ(drifts.code, 1);
  EXPECT_THAT(drifts.out, AllOf(HasSubstr(id), HasSubstr("partitions"), HasSubstr("pending")));
  const Output why = cli({"explain", "platform", "instance/kafka_topic.orders"});
  EXPECT_THAT(why.out, AllOf(HasSubstr("partitions"), HasSubstr("drift"), HasSubstr("default for class config"),
                             HasSubstr("equal attributes; --all shows them"), Not(HasSubstr("sasl_password"))));
  EXPECT_THAT(cli({"explain", "platform", "instance/kafka_topic.orders", "--all"}).out, HasSubstr("sasl_password"));
  EXPECT_THAT(cli({"queue"}).out, AllOf(HasSubstr(id), HasSubstr("APPROVE REJECT IGNORE")));
  EXPECT_EQ(cli({"reject", ref(), "--reason", "put it back"}).code, 0);
  EXPECT_THAT(cli({"drifts"}).out, HasSubstr("rejected"));
  EXPECT_EQ(cli({"undo", id}).code, 0);
  EXPECT_EQ(cli({"approve", ref(), "--reason", "planned"}).code, 0);
  EXPECT_EQ(cli({"drifts"}).code, 0);
  EXPECT_THAT(cli({"audit"}).out, AllOf(HasSubstr("put it back"), HasSubstr("undid reject"), HasSubstr("planned"),
                                        HasSubstr("partitions"), HasSubstr("instance/kafka_topic.orders")));
  EXPECT_EQ(cli({"audit", "--verify"}).code, 0);
  const Output late = cli({"approve", id});
  EXPECT_EQ(late.code, 1);
  EXPECT_THAT(late.err, HasSubstr("is closed: approved"));
}

TEST_F(CliLine, BaitAndSwitchOfAnApproverIsRefused) {
  ASSERT_NO_FATAL_FAILURE(run_agent("  desk: { type: notifications }\n"));
  const std::string id = drift();
  const std::string looked_at = ref();
  replace_file(state_, tfstate(7, 99));
  ASSERT_TRUE(eventually([&] { return ref() != looked_at; })) << agent_->log();
  const Output refused = cli({"approve", looked_at, "--reason", "4 is fine"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("conflict"), HasSubstr("moved since you looked"), HasSubstr("99")));
  const Output bare = cli({"approve", id});
  EXPECT_EQ(bare.code, 2) << "without a terminal nobody can confirm the values";
  EXPECT_THAT(bare.out, HasSubstr("99"));
  EXPECT_THAT(bare.err, HasSubstr("driftd approve " + ref()));
  EXPECT_EQ(agent_->rows({"drifts"}).at(0).at("status"), "pending");
  EXPECT_THAT(cli({"audit"}).out, HasSubstr("moved since you looked"));
}

TEST_F(CliLine, OnceBesideARunningAgentAsksItAndLeavesItsLockAlone) {
  ASSERT_NO_FATAL_FAILURE(run_agent("  desk: { type: notifications }\n"));
  const auto once = [&] {
    return run({Agent::binary(), "--config", agent_->config(), "once"}, {{"HOOK_SECRET", "hook-canary-of-24-bytes!"}});
  };
  EXPECT_EQ(once().code, 0);
  drift();
  EXPECT_EQ(once().code, 1);
  EXPECT_TRUE(agent_->running());
  EXPECT_EQ(agent_->stop(), 0);
  EXPECT_EQ(once().code, 1) << "without the agent it reads the same store";
}

TEST_F(CliLine, ReplaySendsStoredEventsAgainUnderTheirIds) {
  HttpReceiver receiver;
  ASSERT_NO_FATAL_FAILURE(run_agent(webhook_sink(receiver)));
  drift();
  const std::string subject = "platform/instance/kafka_topic.orders";
  ASSERT_TRUE(eventually([&] { return events_of_webhook(receiver)[subject].size() == 1; }));
  const Output replayed = cli({"replay", "--sink", "ops", "--from", "1", "--key", subject});
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  ASSERT_TRUE(eventually([&] { return events_of_webhook(receiver)[subject].size() == 2; })) << replayed.out;
  const auto ids = events_of_webhook(receiver)[subject];
  EXPECT_EQ(ids[0], ids[1]);
  const Output unknown = cli({"replay", "--sink", "nobody", "--from", "1"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("nobody"), HasSubstr("ops")));
}

TEST_F(CliLine, FollowedEventsArriveWhileTheyHappen) {
  ASSERT_NO_FATAL_FAILURE(run_agent("  desk: { type: notifications }\n"));
  Child follow({Agent::binary(), "events", "--follow", "--socket", agent_->socket(), "-o", "json"},
               {dir_.file("followed"), {}, {}});
  const auto followed = [&](const std::string& text) {
    return eventually([&] { return read_file(dir_.file("followed")).find(text) != std::string::npos; });
  };
  const std::string id = drift();
  EXPECT_TRUE(followed(id)) << read_file(dir_.file("followed"));
  // The first may have been stored before the program asked. Now it follows.
  ASSERT_EQ(cli({"ignore", ref(), "--reason", "seen while it followed"}).code, 0);
  EXPECT_TRUE(followed("seen while it followed")) << read_file(dir_.file("followed"));
}

TEST_F(CliLine, MetricsCarryThePrefixTheLogIsJsonAndAnInProcessBackendWorks) {
  more_of_backend_ = "    isolation: in-process\n";
  ASSERT_NO_FATAL_FAILURE(
      run_agent("  desk: { type: notifications }\n", "metrics: { prefix: prism }\nlog: { format: json }\n"));
  drift();
  const Output metrics = run({"curl", "-sS", "http://127.0.0.1:" + std::to_string(agent_->admin_port()) + "/metrics"});
  EXPECT_THAT(metrics.out,
              AllOf(HasSubstr("prism_backend_drift_detected_total{backend=\"platform\""), Not(HasSubstr("\ndriftd_"))));
  EXPECT_EQ(agent_->backend("platform")->at("worker").at("state"), "in-process");
  std::istringstream lines(agent_->log());
  int read = 0;
  for (std::string line; std::getline(lines, line); ++read) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(entry.is_object()) << line;
    EXPECT_TRUE(entry.contains("time") && entry.contains("level") && entry.contains("room") &&
                entry.contains("message"));
  }
  EXPECT_GT(read, 0);
}

TEST_F(CliLine, ASecondSigtermEndsADrainThatHangs) {
  HttpReceiver receiver({HttpScripted{200, {}, 60'000}});
  ASSERT_NO_FATAL_FAILURE(run_agent(webhook_sink(receiver)));
  ASSERT_TRUE(eventually([&] { return agent_->ask({"status"}).dump().find("\"in_flight\":1") != std::string::npos; }))
      << agent_->ask({"status"}).dump();
  agent_->signal(SIGTERM);
  ASSERT_TRUE(eventually([&] { return agent_->log().find("draining") != std::string::npos; }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(agent_->stop(), 128 + SIGTERM);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
}

TEST_F(CliLine, SigtermDuringTheStartIsObeyed) {
  const Agent configured(dir_, "backends:\n" + terraform_backend(state_) + "sinks:\n  desk: { type: notifications }\n");
  for (int round = 0; round < 12; ++round) {
    std::filesystem::remove_all(configured.data_dir());
    Child agent({Agent::binary(), "run", "--config", configured.config()}, {dir_.file("start.log"), {}, {}});
    // The key is one of the first files of a start, which then takes some milliseconds more.
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(configured.data_dir() + "/installation.key"); }));
    agent.signal(SIGTERM);
    EXPECT_THAT(agent.wait(seconds(10)), testing::AnyOf(0, 128 + SIGTERM)) << "round " << round << "\n"
                                                                           << read_file(dir_.file("start.log"));
  }
}

}  // namespace
}  // namespace driftd::test
