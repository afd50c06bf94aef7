// SPDX-License-Identifier: Apache-2.0
// What differs between two values, as lines that a person reads.
#include "cli/glance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/value/schema.hpp"

namespace driftd::cli {
namespace {

using core::Value;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::optional<Value> json(const char* text) {
  if (text == nullptr) return std::nullopt;
  auto value = core::parse(text);
  EXPECT_TRUE(value) << text;
  return value ? std::optional(*value) : std::nullopt;
}

std::vector<std::string> lines(const char* before, const char* after, const std::string& name = "x",
                               const GlanceOptions& options = {}) {
  std::vector<std::string> out;
  for (const auto& line : glance(json(before), json(after), name, options)) {
    EXPECT_LE(line.text.size(), options.width + 24) << line.text;
    out.push_back(std::string(1, line.sign) + " " + line.text);
  }
  return out;
}

TEST(Glance, ScalarsStandSideBySide) {
  EXPECT_THAT(lines("1", "2"), ElementsAre("~ 1 → 2"));
  EXPECT_THAT(lines("true", "\"true\""), ElementsAre("~ true → \"true\""));
  EXPECT_THAT(lines("1", "1"), IsEmpty());
  EXPECT_THAT(lines(nullptr, nullptr), IsEmpty());
}

TEST(Glance, LongTextsAreShownAroundTheirFirstDifference) {
  const std::string start(200, 'a'), end(200, 'z');
  const std::string before = "\"" + start + "=128M" + end + "\"", after = "\"" + start + "=256M" + end + "\"";
  const auto found = lines(before.c_str(), after.c_str());
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_THAT(found[0], testing::AllOf(HasSubstr("- …"), HasSubstr("=128M")));
  EXPECT_THAT(found[1], testing::AllOf(HasSubstr("+ …"), HasSubstr("=256M")));
}

TEST(Glance, AnAddedOrRemovedObjectIsOneLine) {
  EXPECT_THAT(lines(nullptr, R"({"port":80})"), ElementsAre(R"(+ {"port":80})"));
  EXPECT_THAT(lines(R"({"port":80})", nullptr), ElementsAre(R"(- {"port":80})"));
  const std::string large = R"({"a":")" + std::string(100, 'x') + R"(","b":1})";
  EXPECT_THAT(lines(nullptr, large.c_str()), ElementsAre("+ {2 members: a, b}"));
}

TEST(Glance, MembersAreNamedByTheirPath) {
  EXPECT_THAT(lines(R"({"a":{"b":1,"c":2}})", R"({"a":{"b":1,"c":3},"d":4})"), ElementsAre("~ a.c: 2 → 3", "+ d: 4"));
}

TEST(Glance, AListSaysWhatWasAddedRemovedMovedAndChanged) {
  EXPECT_THAT(lines(R"(["a","b","c"])", R"(["a","c","d"])"), ElementsAre(R"(- "b")", R"(+ "d")"));
  EXPECT_THAT(lines(R"(["a","b","c"])", R"(["b","c","a"])"), ElementsAre(R"(~ moved from place 1 to 3: "a")"));
  EXPECT_THAT(lines(R"([{"n":"x","p":1,"q":2},{"n":"y"}])", R"([{"n":"y"},{"n":"x","p":1,"q":3}])"),
              ElementsAre("~ [0].q: 2 → 3"));
}

TEST(Glance, AChangedElementIsCalledAsAPersonWould) {
  EXPECT_THAT(lines(R"([{"type":"local"},
                        {"type":"host","databases":"all","users":["app","web"],"address":"10.0.0.0/8","method":"md5"}])",
                    R"([{"type":"local"},
                        {"type":"host","databases":"all","users":["app","web"],"address":"10.0.0.0/8","method":"trust"}])"),
              ElementsAre("  [1]: host all app,web 10.0.0.0/8", R"(~ [1].method: "md5" → "trust")"));
  EXPECT_THAT(lines(R"([{"name":"a","port":1}])", R"([{"name":"a","port":2}])"),
              ElementsAre("  [0]: a", "~ [0].port: 1 → 2"));
}

TEST(Glance, AnElementThatDoesNotFitIntoALineGoesOnAtItsCommas) {
  const std::string rule =
      R"({"address":"10.0.0.0/8","databases":"all","method":"scram-sha-256","type":"hostssl","users":"intruder"})";
  const std::string first = R"({"address":"10.0.0.0/8","databases":"all","method":"scram-sha-256",)",
                    second = R"("type":"hostssl","users":"intruder"})";
  EXPECT_THAT(lines("[1]", ("[" + rule + ",1]").c_str()), ElementsAre("+ " + first, "  " + second));
  EXPECT_THAT(lines(("[" + rule + ",1]").c_str(), "[1]"), ElementsAre("- " + first, "  " + second));
  EXPECT_THAT(lines(("[" + rule + ",1]").c_str(), ("[1," + rule + "]").c_str()),
              ElementsAre("~ moved from place 1 to 2: ", "  " + first, "  " + second));
  const std::string large = R"([{"a":")" + std::string(300, 'x') + R"(","b":1}])";
  EXPECT_THAT(lines("[]", large.c_str()), ElementsAre("+ {2 members: a, b}"));
}

TEST(Glance, ALineOnTopOfALongListIsOneLine) {
  std::string before = "[", after = "[\"new\"";
  for (int i = 0; i < 100; ++i) {
    before += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\"";
    after += ",\"" + std::to_string(i) + "\"";
  }
  EXPECT_THAT(lines((before + "]").c_str(), (after + "]").c_str()), ElementsAre("+ \"new\""));
}

TEST(Glance, TextsOfSeveralLinesAreAUnifiedDiff) {
  EXPECT_THAT(lines(R"("a\nb\nc\nd")", R"("a\nb\nX\nd")"), ElementsAre("  @@ line 2 @@", "  b", "- c", "+ X", "  d"));
}

TEST(Glance, JsonInATextIsComparedByItsMembers) {
  EXPECT_THAT(lines(R"("{\"Statement\":[{\"Action\":\"a\",\"Effect\":\"Allow\",\"Resource\":\"r\"}]}")",
                    R"("{\"Statement\":[{\"Effect\":\"Allow\",\"Action\":\"*\",\"Resource\":\"r\"}]}")"),
              ElementsAre(R"(~ Statement[0].Action: "a" → "*")"));
}

TEST(Glance, SizesAndDurationsStandAsPeopleWriteThem) {
  EXPECT_THAT(lines("604800000", "86400000", "retention.ms"), ElementsAre("~ 604800000 (7 d) → 86400000 (1 d)"));
  EXPECT_THAT(lines("\"4194304\"", "\"8388608\"", "segment.bytes"),
              ElementsAre("~ \"4194304\" (4 MiB) → \"8388608\" (8 MiB)"));
  EXPECT_THAT(lines("1000", "2000", "config[\"delete.retention.ms\"]"), ElementsAre("~ 1000 (1 s) → 2000 (2 s)"));
  core::AttributeRule rule;
  rule.type = core::ValueType::bytes;
  rule.unit = "postgres:8kB";
  EXPECT_THAT(lines("\"512\"", "\"1024\"", "shared_buffers", {.rule = &rule}),
              ElementsAre("~ \"512\" (4 MiB) → \"1024\" (8 MiB)"));
  EXPECT_THAT(lines("1000", "1001", "count"), ElementsAre("~ 1000 → 1001"));
}

TEST(Glance, WhatIsLeftOutIsCounted) {
  std::string after = "[";
  for (int i = 0; i < 40; ++i) after += (i == 0 ? "" : ",") + std::to_string(i);
  const auto found = lines("[]", (after + "]").c_str());
  ASSERT_THAT(found, SizeIs(12));
  EXPECT_EQ(found.back(), "  … and 29 more lines");
}

TEST(Glance, DurationsAndSizesAreExactOrNotShown) {
  EXPECT_EQ(duration_for_people(5'400'000'000'000), "1 h 30 min");
  EXPECT_EQ(duration_for_people(1), "");
  EXPECT_EQ(bytes_for_people(1536), "");
  EXPECT_EQ(bytes_for_people(std::int64_t{3} << 40), "3 TiB");
}

}  // namespace
}  // namespace driftd::cli
