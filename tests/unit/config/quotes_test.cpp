// SPDX-License-Identifier: Apache-2.0
// An unclosed quote must be an error: otherwise the settings behind it would silently have no effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "config/config.hpp"
#include "config/yaml.hpp"

namespace driftd::config {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  const auto parsed = parse_yaml(text, "driftd.yaml");
  return parsed ? "accepted" : render(parsed.error());
}

TEST(Quotes, OneThatIsNotClosedIsRefusedAtItsPlace) {
  const std::string rest = "routes:\n  - { match: { change: [nope] }, to: [nope] }\nsinks:\n  a: { type: nosuch }\n";
  const std::string head = "backends:\n  - name: c\n    provider: redis\n    endpoint: ";
  for (const char* quote :
       {"\"the cache\n", "'the cache\n", "'it''s the cache\n", "\"a \\\" cache\n", "\"été\n", "\"\n", "!!str \"a\n"}) {
    for (const char* end : {"", "\n\n", "   ", "\n  \n \n", "# a comment\n", "\r\n"}) {
      EXPECT_THAT(refusal(head + quote + rest + end), HasSubstr("driftd.yaml:4:")) << quote << end;
      EXPECT_THAT(refusal(head + quote + rest + end), HasSubstr("a quote that is not closed")) << quote << end;
    }
  }
  EXPECT_THAT(refusal(head + "\"the cache\n" + rest), HasSubstr("driftd.yaml:4:15: "));
  EXPECT_THAT(refusal("a: { b: 'x, c: y }\nd: e\n"), HasSubstr("driftd.yaml:1:9: a quote that is not closed"));
  EXPECT_THAT(refusal("a: [ 'x' ]\n\"b\n"), HasSubstr("driftd.yaml:2:1: a quote that is not closed"));
}

TEST(Quotes, WholeConfigurationIsNotValidWithoutItsEnd) {
  const auto loaded = parse(
      "agent: { data_dir: /tmp/x }\nbackends:\n  - name: c\n    provider: redis\n    team: 'pay\nsinks:\n  a: { type: "
      "nosuch }\n",
      "driftd.yaml", {});
  ASSERT_FALSE(loaded);
  EXPECT_THAT(render(loaded.error()), HasSubstr("driftd.yaml:5:11: a quote that is not closed"));
}

TEST(Quotes, ClosedOnesStayWhatTheyAre) {
  for (const char* text : {"a: \"x\"\n", "a: \"x\"", "a: 'it''s'\n# it's\n", "a: |\n  \"x\n", "a: |+\n  it's\n\n\n",
                           "a: x'y\n", "a: \"x\n  y\"\n", "# \"\n"}) {
    EXPECT_EQ(refusal(text), "accepted") << text;
  }
  EXPECT_EQ(parse_yaml("a: |+\n  it's\n\n\n", "f")->find("a")->text, "it's\n\n\n");
}

TEST(Quotes, OneThatEndsAtTheNextQuoteHidesNoSettingBehindAHash) {
  for (const char* text :
       {"name: \"x\npassword: \"#abc\"\nnext: 1\n", "name: 'x\npassword: '#abc'\nnext: 1\n",
        "name: &n \"x\npassword: \"#abc\"\n", "name: !!str 'x\npassword: '#abc'\n",
        "a: { name: \"x, password: \"#y\" }\n}\n", "- \"x\n- \"#y\"\n", "\"k: v\nl: \"#m\"\n: 1\n"}) {
    EXPECT_THAT(refusal(text), HasSubstr("a '#' directly behind a closing quote")) << text;
  }
  EXPECT_THAT(refusal("name: \"x\npassword: \"#abc\"\n"), HasSubstr("driftd.yaml:2:12: "));
  for (const char* text : {"a: \"x\" # y\n", "a: 'it''s #1'\n", "a: \"\\\"#\"\n", "a: ['#', \"#\"]\n", "a: x\"#y\n",
                           "a: &n '#'\nb: *n\n"}) {
    EXPECT_EQ(refusal(text), "accepted") << text;
  }
}

TEST(Quotes, NoDocumentWhoseQuotesDoNotMeetIsAccepted) {
  std::mt19937 random(20261124);
  static const std::string kWords[] = {"cache", "#no", "", "# x", "a: b", "été"};
  for (int round = 0; round < 2'000; ++round) {
    const std::string quote = random() % 2 == 0 ? "'" : "\"";
    const std::size_t lines = 2 + random() % 5, cut = random() % lines;
    std::string text;
    for (std::size_t i = 0; i < lines; ++i)
      text += "k" + std::to_string(i) + ": " + quote + kWords[random() % std::size(kWords)] + (i == cut ? "" : quote) +
              "\n";
    ASSERT_NE(refusal(text), "accepted") << text;
  }
}

/// Documents in block form, each value quoted in one of two ways; `cut` has no closing quote.
struct Drawn {
  std::string whole, cut;
  std::size_t line = 0;  ///< line of the value that is cut
};
Drawn draw(std::mt19937& random) {
  static const std::string kWords[] = {"cache", "it is", "a: b", "- x", "é", "[1]", "", "{ }", "| x", "# no"};
  const std::size_t lines = 1 + random() % 6, at = random() % lines;
  Drawn out;
  out.line = at + 1;
  for (std::size_t i = 0; i < lines; ++i) {
    const bool last_of_its_kind = i > at;  // no further quote follows that would close it
    const std::string word = kWords[random() % std::size(kWords)], key = "k" + std::to_string(i) + ": ";
    const std::string quote = last_of_its_kind ? "" : random() % 2 == 0 ? "'" : "\"";
    const std::string value = last_of_its_kind ? "plain" : quote + word;
    out.whole += key + value + quote + "\n";
    out.cut += key + value + (i == at ? "" : quote) + "\n";
  }
  return out;
}

TEST(Quotes, AnyDocumentWithoutAClosingQuoteIsRefusedAtThatQuote) {
  std::mt19937 random(20261123);
  for (int round = 0; round < 2'000; ++round) {
    const Drawn drawn = draw(random);
    ASSERT_EQ(refusal(drawn.whole), "accepted") << drawn.whole;
    const std::string where = "driftd.yaml:" + std::to_string(drawn.line) + ":5: a quote that is not closed";
    ASSERT_THAT(refusal(drawn.cut), HasSubstr(where)) << drawn.cut;
  }
}

}  // namespace
}  // namespace driftd::config
