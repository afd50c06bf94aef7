// SPDX-License-Identifier: Apache-2.0
// Links that decide, beside a running agent, and what an attacker would try with them.
#include <filesystem>
#include <future>

#include "notified_agent.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kScript = "<script>alert(1)</script>\\\"'";  // as JSON

class Links : public Notified {
 protected:
  void SetUp() override { port_ = free_port(); }

  /// `of_links`: more keys of them; `repeat`: of the notifications.
  void drift(const std::string& of_backend = "", const std::string& of_links = "", const std::string& repeat = "4h") {
    ASSERT_NO_FATAL_FAILURE(
        run_agent("group_wait: 1s, group_interval: 1s, repeat: " + repeat + ", links: { base_url: \"" + base() +
                      "/ops/\", listen: \"127.0.0.1:" + std::to_string(port_) + "\", sinks: [chat]" + of_links + " }",
                  "format: generic, secret: \"${env:HOOK_SECRET}\"", of_backend));
    change(4);
    ASSERT_TRUE(eventually([&] { return !sent().empty(); }, seconds(20))) << agent_->log();
  }
  std::string base() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// The URL of a link in the newest message.
  std::string url(const std::string& action) const {
    const nlohmann::json newest = sent().back();
    for (const auto& link : newest.at("drifts").at(0).at("links")) {
      if (link.at("action") == action) return link.at("url");
    }
    return "no link to " + action;
  }
  static std::string token(const std::string& url) { return url.substr(url.rfind('/') + 1); }
  /// The answer with its headers, the status first.
  static std::string curl(std::vector<std::string> words) {
    words.insert(words.begin(), {"curl", "-s", "-i", "--max-time", "10"});
    return run(words).out;
  }
  std::string open(const std::string& url) const { return curl({url}); }
  /// What the page's button does.
  std::string press(const std::string& url, const std::string& name = "", const std::string& reason = "") const {
    return curl({"--data-urlencode", "token=" + token(url), "--data-urlencode", "name=" + name, "--data-urlencode",
                 "reason=" + reason, url.substr(0, url.rfind('/') + 1)});
  }
  std::string audit() const { return cli({"audit", "-o", "json"}).out; }
  std::string status() const {
    const auto rows = agent_->rows({"drifts", "--all"});
    return rows.empty() ? "" : rows.at(0).at("status");
  }

  int port_ = 0;
};

TEST_F(Links, OnlyTheButtonDecidesAndOnlyOnce) {
  ASSERT_NO_FATAL_FAILURE(drift());
  const std::string link = url("approve");
  EXPECT_THAT(link, HasSubstr(base() + "/ops/l/"));
  for (int i = 0; i < 5; ++i) {  // mail filters and chats open links, also with HEAD
    const std::string page = open(link);
    EXPECT_THAT(page, AllOf(HasSubstr("HTTP/1.1 200"), HasSubstr("<form method=\"post\" action=\".\">"),
                            HasSubstr("partitions"), HasSubstr("Approve?")));
    EXPECT_THAT(curl({"-I", link}), HasSubstr("HTTP/1.1 200"));
  }
  EXPECT_EQ(status(), "pending") << "looking decides nothing";
  for (const char* method : {"PUT", "DELETE", "OPTIONS"}) {
    EXPECT_THAT(curl({"-X", method, link}), HasSubstr("HTTP/1.1 405")) << method;
  }
  EXPECT_THAT(curl({"-H", "Content-Type: application/json", "-d", "{\"token\":\"" + token(link) + "\"}", link}),
              HasSubstr("HTTP/1.1 415"));
  EXPECT_EQ(status(), "pending");
  const std::string other = url("reject");
  const std::string done = press(link, "Ann <b>", "as planned");
  EXPECT_THAT(done, AllOf(HasSubstr("HTTP/1.1 200"), HasSubstr("approved"), HasSubstr("driftd undo d-")));
  EXPECT_EQ(status(), "approved");
  EXPECT_THAT(press(link), AllOf(HasSubstr("HTTP/1.1 410"), HasSubstr("This link was used already")));
  EXPECT_THAT(open(link), AllOf(HasSubstr("HTTP/1.1 410"), HasSubstr("driftd drifts")));
  EXPECT_THAT(press(other), AllOf(HasSubstr("HTTP/1.1 410"), HasSubstr("approved")));
  const std::string log = audit();
  EXPECT_THAT(log, AllOf(HasSubstr("link of notification "), HasSubstr(", sent to chat (typed: Ann <b>)"),
                         HasSubstr("as planned"), HasSubstr("denied: ")));
  EXPECT_EQ(cli({"audit", "verify"}).code, 0);
}

TEST_F(Links, NoTokenIsAnywhereButInTheMessage) {
  ASSERT_NO_FATAL_FAILURE(drift());
  const std::string link = url("reject"), secret = token(link);
  EXPECT_EQ(secret.size(), 40u);
  (void)open(link);
  EXPECT_THAT(press(link, "Ann"), HasSubstr("rejected"));
  (void)press(link, "Ann");
  (void)open(base() + "/ops/l/" + secret + "?x=" + secret);
  EXPECT_THAT(audit(), Not(HasSubstr(secret)));
  EXPECT_THAT(cli({"audit", "export"}).out, Not(HasSubstr(secret)));
  EXPECT_THAT(agent_->log(), Not(HasSubstr(secret)));
  EXPECT_THAT(cli({"events", "-o", "json"}).out, Not(HasSubstr(secret)));
  EXPECT_EQ(agent_->stop(), 0);
  EXPECT_EQ(read_files(agent_->data_dir()).find(secret), std::string::npos);
}

TEST_F(Links, AValueThatMovedIsNotDecidedByTheOldLink) {
  ASSERT_NO_FATAL_FAILURE(drift());
  const std::string link = url("approve");
  const std::string looked_at = ref();
  change(9);
  ASSERT_TRUE(eventually([&] { return ref() != looked_at; })) << agent_->log();
  EXPECT_THAT(open(link), AllOf(HasSubstr("HTTP/1.1 409"), HasSubstr("The value has changed since")));
  EXPECT_THAT(press(link), AllOf(HasSubstr("HTTP/1.1 409"), HasSubstr("Nothing was decided now")));
  EXPECT_EQ(status(), "pending");
  ASSERT_TRUE(eventually([&] { return url("approve") != link; }, seconds(20)))
      << "the next message has links of its own";
  EXPECT_THAT(press(url("approve")), HasSubstr("approved"));
}

TEST_F(Links, OfManyPostsAtOnceOneDecides) {
  ASSERT_NO_FATAL_FAILURE(drift("    policy: [ { match: {}, action: manual, approvals: 3 } ]\n"));
  const std::string link = url("approve");
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 8; ++i) {
    answers.push_back(std::async(std::launch::async, [&, i] { return press(link, "p" + std::to_string(i)); }));
  }
  int done = 0;
  for (auto& answer : answers) done += answer.get().find("HTTP/1.1 200") != std::string::npos ? 1 : 0;
  EXPECT_EQ(done, 1);
  EXPECT_EQ(agent_->ask({"queue"}).at("notifications").at(0).at("approvals"), "1 of 3");
}

TEST_F(Links, AllLinksTogetherAreOnePerson) {
  ASSERT_NO_FATAL_FAILURE(
      drift("    policy: [ { match: {}, action: manual, approvals: 2 } ]\n", ", actions: [approve, claim]", "2s"));
  EXPECT_THAT(url("reject"), HasSubstr("no link")) << "only what `actions` names";
  const std::string first = url("approve");
  EXPECT_THAT(press(first, "Ann"), AllOf(HasSubstr("HTTP/1.1 200"), HasSubstr("another person's")));
  EXPECT_EQ(status(), "pending");
  ASSERT_TRUE(eventually([&] { return url("approve") != first; }, seconds(20))) << "the message is not repeated";
  EXPECT_THAT(press(url("approve"), "Bob"), AllOf(HasSubstr("HTTP/1.1 409"), HasSubstr("links count as one person")));
  EXPECT_EQ(status(), "pending");
  EXPECT_EQ(cli({"undo", id()}).code, 0);
  EXPECT_THAT(press(first, "Ann"), HasSubstr("HTTP/1.1 410")) << "an undone approval does not bring its link back";
}

TEST_F(Links, AClaimNeedsAName) {
  ASSERT_NO_FATAL_FAILURE(drift());
  EXPECT_THAT(press(url("claim")), AllOf(HasSubstr("HTTP/1.1 400"), HasSubstr("Your name is missing")));
  EXPECT_THAT(press(url("claim"), "Ann"), AllOf(HasSubstr("HTTP/1.1 200"), HasSubstr("driftd release d-")));
  EXPECT_THAT(agent_->ask({"queue"}).at("notifications").at(0).at("claimed_by").get<std::string>(),
              HasSubstr("(typed: Ann)"));
  EXPECT_THAT(press(url("approve"), "Bob"), AllOf(HasSubstr("HTTP/1.1 409"), HasSubstr("claimed by")));
  EXPECT_EQ(status(), "pending");
}

TEST_F(Links, ThePagesRunNothingAndLeadNowhere) {
  ASSERT_NO_FATAL_FAILURE(drift());
  std::string hostile = topics_state(2, 4);
  hostile.replace(hostile.find("\"t1\""), 4, "\"" + kScript + "\"");
  std::filesystem::rename(dir_.write("infra/next", hostile), state_);
  std::string link;
  const auto find_link = [&] {
    const nlohmann::json newest = sent().back();
    for (const auto& drift : newest.at("drifts")) {
      const bool named = drift.at("resource").get<std::string>().find("<script>") != std::string::npos;
      for (const auto& one : drift.at("links")) {
        if (named && one.at("action") == "ignore") link = one.at("url");
      }
    }
    return !link.empty();
  };
  ASSERT_TRUE(eventually(find_link, seconds(20))) << agent_->log();
  const std::string page = open(link);
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script")),
                          HasSubstr("Content-Security-Policy: default-src 'none'; form-action "
                                    "'self'; frame-ancestors 'none'; base-uri 'none'"),
                          HasSubstr("Referrer-Policy: no-referrer"), HasSubstr("Cache-Control: no-store"),
                          HasSubstr("X-Frame-Options: DENY"), HasSubstr("X-Content-Type-Options: nosniff")));
  EXPECT_THAT(press(link, "<script>x</script>\" onfocus=x", "<img src=x>"),
              AllOf(Not(HasSubstr("<script")), Not(HasSubstr("<img")), Not(HasSubstr("Location:"))));
  for (const std::string path :
       {"//evil.example/l/x", "/l/", "/l/../../etc/passwd", "/l/%00", "/v1/drifts", "/metrics", "/"}) {
    const std::string answer = curl({"--path-as-is", base() + path});
    EXPECT_THAT(answer, AllOf(HasSubstr("HTTP/1.1 404"), Not(HasSubstr("Location:")))) << path;
  }
  EXPECT_THAT(curl({"-d", std::string(10'000, 'x'), base() + "/l/"}), HasSubstr("HTTP/1.1 400"));
}

TEST_F(Links, GuessesAreSlowedDownAndDoNotFillTheAuditLog) {
  ASSERT_NO_FATAL_FAILURE(drift());
  const std::string wrong = base() + "/l/" + std::string(40, 'a'), right = url("reject");
  EXPECT_THAT(press(wrong), AllOf(HasSubstr("HTTP/1.1 404"), HasSubstr("This link is not known")));
  const Output many = run({"curl", "-s", "-w", "%{http_code} ", "-o", "/dev/null", "-d",
                           "token=" + std::string(40, 'a'), base() + "/l/?[1-200]"});  // by one process, so that they
                                                                                       // come faster than it allows
  EXPECT_THAT(many.out, HasSubstr("429")) << many.out;
  std::size_t lines = 0;
  for (const auto& line : agent_->rows({"audit"})) lines += line.value("actor", "") == "unknown link" ? 1 : 0;
  EXPECT_GE(lines, 1u);
  EXPECT_LE(lines, 30u);
  ASSERT_TRUE(eventually([&] { return press(right).find("rejected") != std::string::npos; }, seconds(20)));
}

}  // namespace
}  // namespace driftd::test
