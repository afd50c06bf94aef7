// SPDX-License-Identifier: Apache-2.0
// Claims, undoing and silences by the command line and by the API, beside a running agent.
#include "notified_agent.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class NotifiedDrift : public Notified {
 protected:
  void drift(const std::string& notifications = "group_wait: 1s, group_interval: 1s") {
    ASSERT_NO_FATAL_FAILURE(run_agent(notifications, "format: generic, secret: \"${env:HOOK_SECRET}\""));
    change(4);
    ASSERT_TRUE(eventually([&] { return agent_->rows({"drifts"}).size() == 1; })) << agent_->log();
  }
  /// POSTs to the API. Returns the answer with the status of HTTP in front.
  std::string post(const std::string& path, const std::string& body) const {
    const Output out = run({"curl", "-s", "-w", "\n%{http_code}", "--unix-socket", agent_->socket(), "-d", body,
                            "http://localhost/v1/" + path});
    const auto end = out.out.rfind('\n');
    return out.out.substr(end + 1) + " " + out.out.substr(0, end);
  }
  static std::vector<std::string> messages_in(const nlohmann::json& notification) {
    std::vector<std::string> out;
    for (const auto& drift : notification.at("drifts")) out.push_back(drift.at("message"));
    return out;
  }
  nlohmann::json queued() const { return agent_->ask({"queue"}).at("notifications").at(0); }
};

TEST_F(NotifiedDrift, AClaimHoldsUntilItIsReleasedOrTakenOver) {
  ASSERT_NO_FATAL_FAILURE(drift());
  const std::string claimed = post("drifts/" + id() + "/claim", R"({"seconds":600,"reason":"mine"})");
  EXPECT_THAT(claimed, HasSubstr("200 ")) << claimed;
  const std::string holder = queued().at("claimed_by");
  EXPECT_FALSE(holder.empty());
  EXPECT_NE(queued().at("claimed_until"), "");
  EXPECT_EQ(cli({"claim", id(), "--for", "20m"}).code, 0) << "one's own claim is renewed";
  EXPECT_EQ(cli({"release", id()}).code, 0);
  EXPECT_EQ(queued().at("claimed_by"), "");
  const Output again = cli({"release", id()});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("is not claimed: there is nothing to release"));
  EXPECT_THAT(post("drifts/" + id() + "/release", "{}"), AllOf(HasSubstr("409 "), HasSubstr("is not claimed")));
  EXPECT_THAT(post("drifts/" + id() + "/claim", R"({"seconds":0})"), AllOf(HasSubstr("400 "), HasSubstr("604800")));
  EXPECT_THAT(post("drifts/d-0000000000000000/claim", "{}"), HasSubstr("404 "));
  EXPECT_EQ(cli({"claim", id(), "--for", "8d"}).code, 2);
  EXPECT_EQ(cli({"claim", id(), "--take-over"}).code, 0);
  EXPECT_THAT(cli({"audit"}).out, AllOf(HasSubstr("claim"), HasSubstr("release"), HasSubstr("mine")));
}

TEST_F(NotifiedDrift, UndoTakesBackARejectionAndAnApproval) {
  ASSERT_NO_FATAL_FAILURE(drift());
  const std::string drift_id = id();
  EXPECT_EQ(cli({"undo", drift_id}).code, 1) << "it is not decided";
  EXPECT_EQ(cli({"reject", ref()}).code, 0);
  EXPECT_THAT(post("drifts/" + drift_id + "/undo", "{}"), HasSubstr("200 "));
  EXPECT_EQ(agent_->rows({"drifts"}).at(0).at("status"), "pending");
  EXPECT_EQ(cli({"approve", ref()}).code, 0);
  EXPECT_TRUE(agent_->rows({"drifts"}).empty());
  EXPECT_EQ(cli({"undo", drift_id, "--reason", "too early"}).code, 0);
  EXPECT_EQ(agent_->rows({"drifts"}).at(0).at("id"), drift_id);
  EXPECT_EQ(agent_->rows({"drifts"}).at(0).at("status"), "pending");
  EXPECT_THAT(cli({"audit"}).out, AllOf(HasSubstr("undid approve"), HasSubstr("too early")));
}

TEST_F(NotifiedDrift, ASilenceHoldsBackTheNotificationUntilItEnds) {
  topics_ = 2;
  ASSERT_NO_FATAL_FAILURE(
      run_agent("group_wait: 1s, group_interval: 1s", "format: generic, secret: \"${env:HOOK_SECRET}\""));
  const Output added =
      cli({"silence", "add", "--backend", "plat*", "--id", "*.t0", "--for", "1h", "--reason", "migration"});
  ASSERT_EQ(added.code, 0) << added.err;
  change(4);
  ASSERT_TRUE(eventually([&] { return agent_->rows({"drifts"}).size() == 2; })) << agent_->log();
  EXPECT_THAT(cli({"silence", "list"}).out, AllOf(HasSubstr("plat*"), HasSubstr("migration")));
  EXPECT_THAT(post("silences/add", R"({"backend":"x","seconds":60})"), AllOf(HasSubstr("400 "), HasSubstr("reason")));
  EXPECT_THAT(post("silences/add", R"({"seconds":60,"reason":"all"})"), AllOf(HasSubstr("400 "), HasSubstr("about")));
  EXPECT_THAT(post("silences/add", R"({"backend":"x","reason":"y","seconds":99999999})"), HasSubstr("400 "));
  EXPECT_THAT(post("silences/expire", R"({"id":"s-none"})"), AllOf(HasSubstr("404 "), HasSubstr("silence list")));
  EXPECT_EQ(cli({"silence", "add", "--for", "1h", "--reason", "x"}).code, 2);
  const std::string silence = agent_->rows({"silence", "list"}).at(0).at("id");
  ASSERT_TRUE(eventually([&] { return !sent().empty(); }, seconds(20))) << agent_->log();
  EXPECT_EQ(sent().front().at("count"), 1);
  EXPECT_THAT(messages_in(sent().front()), ElementsAre(HasSubstr("Field instance/kafka_topic.t1:partitions changed")));
  ASSERT_EQ(sent().size(), 1u);
  EXPECT_EQ(cli({"silence", "expire", silence}).code, 0);
  ASSERT_TRUE(eventually([&] { return sent().size() == 2; }, seconds(20))) << agent_->log();
  EXPECT_THAT(messages_in(sent().back()),
              Contains(HasSubstr("Field instance/kafka_topic.t0:partitions changed from 3 to 4")));
  EXPECT_THAT(cli({"silence", "list"}).out, HasSubstr("no silences"));
  EXPECT_THAT(cli({"audit"}).out, AllOf(HasSubstr("silences add"), HasSubstr("silences expire")));
}

}  // namespace
}  // namespace driftd::test
