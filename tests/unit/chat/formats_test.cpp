// SPDX-License-Identifier: Apache-2.0
// What each format makes of a message: values that would mean something there, and its limits.
#include <gmock/gmock.h>

#include "unit/chat/chat_fixture.hpp"

namespace driftd::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const std::string kHostile =
    "<!channel> <https://evil.example|Approve> *b* _i_ `c` \"q\" & @here [x](https://evil.example)";

TEST(ChatFormats, NoValuePingsAnybodyOrBecomesALinkInSlack) {
  ChatMessage message = notification(1, kHostile);
  message.title = kHostile;
  message.remark = kHostile;
  const std::string json = rendered(builtin(ChatFormat::slack), message);
  EXPECT_THAT(json, AllOf(Not(HasSubstr("<!")), Not(HasSubstr("<https")), HasSubstr("&lt;!channel&gt;")));
  EXPECT_THAT(texts(json, "type"), Not(Contains("mrkdwn"))) << "values stand in plain_text only";
  EXPECT_THAT(texts(json), Contains(HasSubstr("&amp; @here [x](https://evil.example)")));
}

TEST(ChatFormats, MarksOfSlackMeanNothingInAValue) {
  const auto settings = own(ChatFormat::slack, R"({ "blocks": [ { "type": "section",
      "text": { "type": "mrkdwn", "text": "*{{ title }}*" } } ] })");
  ChatMessage message;
  message.title = "a *b* `c` ~d~";
  EXPECT_THAT(texts(rendered(settings, message)), Contains("*a *\u200bb*\u200b `\u200bc`\u200b ~\u200bd~\u200b*"));
}

TEST(ChatFormats, MarkdownOfTeamsMeansNothingInAValue) {
  ChatMessage message = notification(1, kHostile);
  message.title = "a [Approve](https://evil.example) **b** {{DATE(2020-01-01T00:00:00Z)}} <at>x</at>";
  const auto found = texts(rendered(builtin(ChatFormat::teams), message));
  EXPECT_THAT(found, Contains(AllOf(HasSubstr(R"(\[Approve\]\(https://evil\.example\) \*\*b\*\*)"),
                                    HasSubstr(R"(\{\{DATE\()"), HasSubstr(R"(\<at\>x\</at\>)"))));
  EXPECT_THAT(found, Contains(HasSubstr(kHostile))) << "a TextRun shows what it is given";
}

TEST(ChatFormats, GenericHasValuesAsTheyAre) {
  const std::string json = rendered(builtin(ChatFormat::generic), notification(1, kHostile));
  EXPECT_THAT(texts(json, "message"), Contains(HasSubstr(kHostile)));
  EXPECT_EQ(core::parse(json)->find("count")->number()->token, "1");
}

TEST(ChatFormats, SlackNeverGetsMoreThanItTakesAndSaysWhatIsMissing) {
  for (const int drifts : {0, 1, 5, 20, 60, 100}) {
    for (const std::size_t bytes : {1u, 200u, 1'000u, 10'240u}) {
      ChatMessage message = notification(drifts, std::string(bytes, '<'));
      message.count += 7;
      const std::string json = rendered(builtin(ChatFormat::slack), message);
      EXPECT_LE(blocks_of(json), 50u);
      EXPECT_LE(json.size(), 13'000u);
      const auto found = texts(json);
      for (const auto& text : found) EXPECT_LE(text.size(), 3'003u);
      const auto shown = std::count_if(found.begin(), found.end(),
                                       [](const auto& text) { return text.find("Field topic/") != std::string::npos; });
      if (drifts == 0) continue;
      EXPECT_GE(shown, 1) << drifts << " drifts of " << bytes;
      EXPECT_THAT(found, Contains(HasSubstr("and " + std::to_string(drifts + 7 - shown) + " more: driftd drifts")));
      EXPECT_THAT(found, Each(Not(testing::EndsWith("&l…")))) << "an escape is not cut";
    }
  }
}

TEST(ChatFormats, SlackGetsAllOfTwentyOrdinaryDrifts) {
  const auto found = texts(rendered(builtin(ChatFormat::slack), notification(20)));
  EXPECT_THAT(found, Contains(HasSubstr("topic/t19")));
  EXPECT_THAT(found, Not(Contains(HasSubstr(" more: "))));
}

TEST(ChatFormats, TeamsNeverGetsMoreThanItTakesAndSaysWhatIsMissing) {
  for (const int drifts : {0, 1, 20, 100}) {
    for (const std::size_t bytes : {1u, 1'000u, 10'240u}) {
      ChatMessage message = notification(drifts, std::string(bytes, '*'));
      message.text = drifts == 0 ? std::string(bytes, '*') : "";
      const std::string json = rendered(builtin(ChatFormat::teams), message);
      EXPECT_LE(json.size(), 28u << 10);
      const auto found = texts(json);
      const auto shown = std::count_if(found.begin(), found.end(),
                                       [](const auto& text) { return text.find("Field topic/") != std::string::npos; });
      if (shown < drifts) {
        EXPECT_THAT(found, Contains(HasSubstr("and " + std::to_string(drifts - shown) + " more: driftd")));
      }
      EXPECT_GE(shown, std::min(drifts, 1));
    }
  }
}

TEST(ChatFormats, LinksStandBesideTheirDrift) {
  ChatMessage message = notification(2);
  message.drifts[1].links = {{"approve", "https://d.example/l/a_b_c"}, {"reject", "https://d.example/l/d"}};
  const std::string slack = rendered(builtin(ChatFormat::slack), message);
  EXPECT_THAT(texts(slack), Contains("<https://d.example/l/a_b_c|Approve>"));
  const std::string teams = rendered(builtin(ChatFormat::teams), message);
  EXPECT_THAT(texts(teams, "url"), SizeIs(2));
  EXPECT_THAT(texts(teams, "title"), Contains("Reject"));
  EXPECT_THAT(texts(rendered(builtin(ChatFormat::generic), message), "url"), SizeIs(2));
}

TEST(ChatFormats, ATemplateWithoutRoomIsRefusedBeforeAnythingIsSent) {
  const std::string block =
      R"({ "type": "section", "text": { "type": "plain_text", "text": ")" + std::string(2'900, 'x') + R"(" } })";
  const auto settings =
      own(ChatFormat::slack, "{ \"blocks\": [" + block + "," + block + "," + block + "," + block + "," + block + "] }");
  const auto checked = sinks::check_room(settings);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("at most 12000 are sent to Slack"));
  EXPECT_TRUE(sinks::check_room(builtin(ChatFormat::slack)));
  EXPECT_TRUE(sinks::check_room(builtin(ChatFormat::teams)));
}

}  // namespace
}  // namespace driftd::test
