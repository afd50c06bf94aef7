// SPDX-License-Identifier: Apache-2.0
// A config file comes from the operator, but a mistake or a generator may make it explode when it is read. It is
// refused with a reason.
#include <gtest/gtest.h>
#include <functional>

#include "config/yaml.hpp"
#include "support/heap/heap.hpp"

namespace driftd::config {
namespace {

std::string repeated(std::string_view part, std::size_t bytes) {
  std::string out;
  while (out.size() + part.size() <= bytes) out += part;
  return out;
}

struct Bomb {
  const char* name;
  const char* words;  ///< part of the error
  std::function<std::string()> text;
};
void PrintTo(const Bomb& bomb, std::ostream* out) { *out << bomb.name; }

const Bomb kBombs[] = {
    {"AliasesOfOneScalar", "aliases make more than 8 MiB of text",
     [] { return "a: &a " + std::string(800'000, 'x') + "\nb: [" + repeated("*a,", 60'000) + "*a]\n"; }},
    {"AliasesOfLists", "aliases and lists make more than 50000 nodes",
     [] { return "a: &a [" + repeated("1,", 40'000) + "1]\nb: [" + repeated("*a,", 40'000) + "*a]\n"; }},
    {"AnchorsInAnchors", "anchors inside anchors",
     [] {
       std::string open;
       for (int i = 0; i < 60; ++i) open += "&k" + std::to_string(i) + " [";
       return "a: " + open + repeated("1,", 60'000) + "1" + std::string(60, ']') + "\n";
     }},
    {"Brackets", "a list or map in brackets that is too large", [] { return repeated("[", kMaxFileBytes); }},
    {"FlowMap", "a list or map in brackets that is too large",
     [] { return "{" + repeated("a: b,", kMaxFileBytes - 8) + "}"; }},
    {"DeepBlocks", "nested deeper than 64", [] { return repeated("- ", 1'000); }},
};

class ConfigBounds : public testing::TestWithParam<Bomb> {};

TEST_P(ConfigBounds, ABombIsRefusedInWordsAndInLittleMemory) {
  const std::string text = GetParam().text();
  const test::HeapPeak peak;
  const auto parsed = parse_yaml(text, "driftd.yaml");
  EXPECT_LE(peak.bytes(), 40u << 20) << (peak.bytes() >> 20) << " MiB";
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().front().what.find(GetParam().words), std::string::npos) << parsed.error().front().what;
}

INSTANTIATE_TEST_SUITE_P(Every, ConfigBounds, testing::ValuesIn(kBombs),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ConfigAnchors, AnAliasWithinTheBoundsIsThatNode) {
  const auto parsed = parse_yaml("a: &a { b: [1, 2] }\nc: *a\n", "driftd.yaml");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->find("c")->find("b")->items.size(), 2u);
}

}  // namespace
}  // namespace driftd::config
