// SPDX-License-Identifier: Apache-2.0
// The reader of states beside nlohmann's parser, on texts written at random: what is accepted, and what is read.
#include <gmock/gmock.h>

#include "states.hpp"
#include "support/state_oracle.hpp"
#include "terraform/document.hpp"
#include "terraform/scanner.hpp"
#include "terraform/secrets.hpp"
#include "terraform/text_members.hpp"
#include "terraform/tree.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;
using test::StateWriter;

/// Takes no interest in anything.
struct Passing final : DocumentVisitor {
  bool top(const std::string&, std::string_view) override { return true; }
  bool instance(const Resource&, const InstanceText&) override { return true; }
  bool output(const std::string&, std::string_view) override { return true; }
  bool check(std::string_view) override { return true; }
  bool encrypted() override { return true; }
};

bool accepted(const std::string& text) {
  Passing visitor;
  try {
    walk(text, visitor);
  } catch (const sdk::Failure& failure) {
    EXPECT_THAT(failure.what(), testing::HasSubstr("line ")) << text;
    return false;
  }
  return true;
}

/// Changes, removes or adds some bytes.
std::string damaged(std::string text, StateWriter& random) {
  static constexpr std::string_view kBytes = "{}[]:,\"\\ \n09-+.eEtfnu\x01\x1f\x7f\x80\xc3\xa4\xed\xf4\xff";
  for (std::size_t i = 1 + random.below(3); i > 0; --i) {
    const std::size_t at = random.below(text.size());
    const char byte = kBytes[random.below(kBytes.size())];
    switch (random.below(4)) {
      case 0:
        text[at] = byte;
        break;
      case 1:
        text.insert(at, 1, byte);
        break;
      case 2:
        text.erase(at, 1 + random.below(2));
        break;
      default:
        if (random.below(4) == 0) text.resize(at + 1);
    }
    if (text.empty()) return "x";
  }
  return text;
}

TEST(TerraformReader, AcceptsWhatNlohmannsParserAcceptsAndNothingElse) {
  int rejected = 0;
  for (std::uint32_t seed = 0; seed < 20'000; ++seed) {
    StateWriter random(seed);
    std::string text = R"({"x":)" + random.value(5) + "}";
    if (seed % 4 != 0) text = damaged(text, random);
    const bool expected = json::accept(text) && json::parse(text).is_object();
    rejected += expected ? 0 : 1;
    if (!expected && json::accept(text)) continue;  // a list or a scalar, which is refused without a line
    ASSERT_EQ(accepted(text), expected) << "seed " << seed << ": " << text;
  }
  EXPECT_GT(rejected, 5'000);
}

TEST(TerraformReader, NumbersAndEscapesHaveTheLimitsOfNlohmannsParser) {
  for (const std::string value : {"1e308",
                                  "1e309",
                                  "-1e999",
                                  "1e-999",
                                  "01",
                                  "1.",
                                  ".5",
                                  "-",
                                  "+1",
                                  "1e",
                                  "1e+",
                                  "0x1",
                                  "--1",
                                  R"("\ud800")",
                                  R"("\udc00")",
                                  R"("\ud800\u0041")",
                                  R"("\ud800\udc00")",
                                  R"("\uD83D\uDE00")",
                                  R"("\u00g0")",
                                  R"("\x41")",
                                  "\"\t\"",
                                  "\"\x7f\"",
                                  "\"\xed\xa0\x80\"",
                                  "\"\xc0\x80\"",
                                  "\"\xf4\x90\x80\x80\"",
                                  "tru",
                                  "nul",
                                  "True",
                                  "[1,]",
                                  "{\"a\":1,}",
                                  "{\"a\"}",
                                  "[1 2]",
                                  "[",
                                  "\"",
                                  "\"\\",
                                  "{1:2}"}) {
    const std::string text = R"({"x":)" + value + "}";
    EXPECT_EQ(accepted(text), json::accept(text)) << text;
  }
  const std::string digits(400, '9');
  EXPECT_FALSE(accepted(R"({"x":)" + digits + "}"));
  EXPECT_TRUE(accepted(R"({"x":0.)" + digits + "}"));
  EXPECT_TRUE(accepted("\xEF\xBB\xBF{}")) << "a byte order mark";
}

/// The window of a walk may end behind any byte.
TEST(TerraformReader, ATextThatArrivesByteForByteIsReadAsOneThatIsWhole) {
  for (std::uint32_t seed = 0; seed < 1'500; ++seed) {
    StateWriter random(seed);
    std::string text = random.value(4);
    if (seed % 3 == 0) text = damaged(text, random);
    const std::string padded = text + std::string(kPadding, '\0');
    Scanner whole, split;
    whole.begin();
    const char* end = padded.data();
    const auto expected = whole.run(padded.data(), end, padded.data() + text.size(), true);
    split.begin();
    auto result = Scanner::Result::more;
    std::size_t at = 0;
    for (std::size_t size = 1; size <= text.size() && result == Scanner::Result::more; ++size) {
      const std::string part = text.substr(0, size) + std::string(kPadding, '\0');
      const char* from = part.data() + at;
      result = split.run(part.data(), from, part.data() + size, size == text.size());
      at = static_cast<std::size_t>(from - part.data());
    }
    ASSERT_EQ(result, expected) << "seed " << seed << ": " << text;
    EXPECT_EQ(at, static_cast<std::size_t>(end - padded.data())) << text;
    EXPECT_EQ(split.traits().values, whole.traits().values);
    EXPECT_EQ(split.traits().deepest, whole.traits().deepest);
    EXPECT_EQ(split.traits().unordered, whole.traits().unordered);
    EXPECT_EQ(split.traits().secret_key, whole.traits().secret_key);
    EXPECT_EQ(split.traits().blanks, whole.traits().blanks);
  }
}

/// Reads each instance as text and as a tree; both must say the same.
struct Both final : StateVisitor {
  std::vector<test::ExpectedInstance> seen;
  std::size_t plain = 0, copies = 0;
  bool instance(const Instance& instance) override {
    const Settings settings;
    const sdk::Record record = instance_record({}, instance, settings);
    InstanceText text;
    text.attributes = instance.attributes;
    text.sensitive_attributes = instance.sensitive;
    text.traits = instance.traits;
    text.traits.escaped = true;  // never passed on as it is
    const Instance slow(instance.resource, text);
    EXPECT_EQ(json::parse(record.body), json::parse(instance_record({}, slow, settings).body));
    EXPECT_EQ(secret_paths(instance, settings), secret_paths(slow, settings)) << instance.attributes;
    copies += instance.is_plain() && record.sensitive.size() > 1 && instance.sensitive.size() > 2 ? 1 : 0;
    plain += instance.is_plain() ? 1 : 0;
    seen.push_back({instance.id(), json::parse(record.body)});
    return true;
  }
  bool output(const std::string&, const json&) override { return true; }
};

void expect_equal(const std::string& text, std::size_t& plain, std::size_t& copies) {
  const Spool spool = spool_of(text);
  Both both;
  read_contents(spool, read_head(spool), both);
  plain += both.plain;
  copies += both.copies;
  const auto expected = test::expected_instances(json::parse(text));
  ASSERT_EQ(both.seen.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(both.seen[i].id, expected[i].id);
    EXPECT_EQ(both.seen[i].attributes, expected[i].attributes) << both.seen[i].id;
  }
}

TEST(TerraformReader, ReadsFromTextWhatATreeOfTheDocumentHolds) {
  std::size_t plain = 0, copies = 0;
  for (std::uint32_t seed = 0; seed < 500 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    expect_equal(StateWriter(seed).state(6), plain, copies);
  }
  EXPECT_GT(copies, 100u) << "instances with copies of marked values";
  EXPECT_GT(plain, 1'000u);
}

TEST(TerraformReader, AStateOfManyWindowsIsReadLikeASmallOne) {
  std::size_t plain = 0, copies = 0;
  for (const std::uint32_t seed : {1u, 2u}) {
    SCOPED_TRACE(seed);
    StateWriter random(seed);
    std::string text = random.state(1'500);
    // one attribute is longer than a window, and than the one that is twice as large
    const std::string lengthy = "\"name\":\"" + std::string(900'000 + random.below(9), 'x') + "→\"";
    const auto at = text.find("\"attributes\":{}");
    ASSERT_NE(at, std::string::npos);
    text.replace(at, 15, "\"attributes\":{" + lengthy + "}");
    expect_equal(text, plain, copies);
  }
}

TEST(TerraformReader, ATextHasTheValueThatItsEscapesSay) {
  for (const std::string token :
       {R"("")", R"("a\b")", R"("\\n")", R"("\"\\\/\b\f\n\r\t")", R"("\u00e9\ud83d\ude00\n")", R"("→")", R"("a\\")"})
    EXPECT_EQ(text_value(token), json::parse(token).get<std::string>()) << token;
  EXPECT_EQ(text_value("12"), "");
  EXPECT_EQ(text_value("null"), "");
}

TEST(TerraformReader, BlanksBetweenTokensChangeNeitherDigestNorBody) {
  const std::string compact = state_with(R"({"attributes":{"a b":" x ","n":[1,2]}})");
  const std::string spaced = json::parse(compact).dump(2);
  EXPECT_EQ(read(compact).head.digest, read(json::parse(spaced).dump()).head.digest);
  EXPECT_EQ(read(spaced).record("instance").body, R"({"a b":" x ","n":[1,2]})");
  const std::string other = state_with(R"({"attributes":{"a b":"x ","n":[1,2]}})");
  EXPECT_NE(read(compact).head.digest, read(other).head.digest);
  std::string blanks;
  for (const char c : compact) blanks += std::string(1, c) + (c == ',' || c == '{' ? "\n  " : "");
  EXPECT_EQ(read(compact).head.digest, read(blanks).head.digest);
}

TEST(TerraformReader, AKeyThatStandsTwiceCountsOnceWithItsLastValue) {
  const Seen seen = read(state_with(R"({"attributes":{"b":{"x":1,"y":2,"x":3},"a":1,"a":2}})"));
  EXPECT_EQ(seen.record("instance").body, R"({"a":2,"b":{"x":3,"y":2}})") << "the host refuses a key that stands twice";
}

TEST(TerraformReader, ABodyKeepsTheDigitsAndTheOrderOfTheFile) {
  const Seen seen = read(state_with(R"({"attributes":{"z":1.50,"a":12345678901234567890123,"e":1E+2}})"));
  EXPECT_EQ(seen.record("instance").body, R"({"z":1.50,"a":12345678901234567890123,"e":1E+2})");
}

TEST(TerraformReader, AnErrorNamesItsLineAndColumn) {
  const auto what = [](const std::string& text) {
    try {
      read(text);
    } catch (const sdk::Failure& failure) {
      return std::string(failure.what());
    }
    return std::string();
  };
  EXPECT_THAT(what("{\n  \"version\": 4,\n  \"serial\": x\n}"),
              testing::HasSubstr("line 3, column 13: expected a value"));
  EXPECT_THAT(what("{\"version\":4,\n\"a\":\"\xff\"}"),
              testing::HasSubstr("line 2, column 6: a byte that is not UTF-8"));
  std::string large = R"({"version":4,"serial":1,"lineage":"x","resources":[)";
  for (int i = 0; i < 40'000; ++i)
    large += "\n {\"mode\":\"managed\",\"type\":\"t\",\"name\":\"n" + std::to_string(i) + "\"},";
  EXPECT_THAT(what(large + "\n 7]}"), testing::HasSubstr("resources[40000]"));
  EXPECT_THAT(what(large + "\n {?]}"), testing::HasSubstr("line 40002, column 3: expected a key"));
}

}  // namespace
}  // namespace driftd::terraform
