// SPDX-License-Identifier: Apache-2.0
// Globs against a naive reference on small inputs, and against bombs by the number of their steps.
#include <gtest/gtest.h>
#include <ctime>
#include <random>

#include "core/value/glob_match.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace driftd::core {
namespace {

/// The reference: follows the definition of a glob, without regard to time.
bool naive(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') return naive(pattern.substr(1), text) || (!text.empty() && naive(pattern, text.substr(1)));
  return !text.empty() && pattern[0] == text[0] && naive(pattern.substr(1), text.substr(1));
}

bool naive(const std::vector<std::string>& glob, std::size_t g, const std::vector<std::string>& path, std::size_t p) {
  if (g == glob.size()) return p == path.size();
  if (glob[g] == "**") return naive(glob, g + 1, path, p) || (p < path.size() && naive(glob, g, path, p + 1));
  if (p == path.size()) return false;
  const auto dots = static_cast<std::size_t>(std::count(path[p].begin(), path[p].end(), '.'));
  std::string joined;
  for (std::size_t next = g; next < glob.size() && next - g <= dots && glob[next] != "**"; ++next) {
    joined += (next == g ? "" : ".") + glob[next];
    if (naive(joined, path[p]) && naive(glob, next + 1, path, p + 1)) return true;
  }
  return false;
}

template <class Random>
std::string word(Random& random, std::string_view alphabet, std::size_t most) {
  std::string out;
  for (auto n = random() % (most + 1); n > 0; --n) out += alphabet[random() % alphabet.size()];
  return out;
}

TEST(GlobProperty, NamesAreMatchedAsTheReferenceMatchesThem) {
  std::mt19937 random(3);
  int hits = 0;
  for (int i = 0; i < 200'000; ++i) {
    const auto pattern = word(random, "ab*", 7), text = word(random, "ab", 8);
    const bool wanted = naive(pattern, text);
    ASSERT_EQ(wild_match(pattern, text), wanted) << pattern << " on " << text;
    hits += wanted ? 1 : 0;
  }
  EXPECT_GT(hits, 10'000);
}

TEST(GlobProperty, PathsAreMatchedAsTheReferenceMatchesThem) {
  std::mt19937 random(4);
  const std::vector<std::string> parts = {"**", "**", "*", "a", "b", "a*", "*b", "c"};
  const std::vector<std::string> names = {"a", "b", "ab", "a.b", "b.a.c", "c", "."};
  int hits = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::vector<std::string> glob, path;
    for (auto n = 1 + random() % 6; n > 0; --n) glob.push_back(parts[random() % parts.size()]);
    for (auto n = random() % 6; n > 0; --n) path.push_back(names[random() % names.size()]);
    Path segments;
    for (const auto& name : path) segments = segments.child(name);
    const bool wanted = naive(glob, 0, path, 0);
    ASSERT_EQ(SegmentMatch(glob).run(segments.segments()), wanted)
        << testing::PrintToString(glob) << " on " << testing::PrintToString(path);
    hits += wanted ? 1 : 0;
  }
  EXPECT_GT(hits, 10'000);
}

/// A path of `depth` members `a`.
Path deep(std::size_t depth, std::string_view name = "a") {
  Path out;
  for (std::size_t i = 0; i < depth; ++i) out = out.child(name);
  return out;
}

TEST(GlobBomb, AnyDepthManyTimesIsAsManySteps) {
  std::vector<std::string> glob;
  for (int i = 0; i < 60; ++i) glob.insert(glob.end(), {"**", "a"});
  glob.emplace_back("b");
  SegmentMatch match(glob);
  EXPECT_FALSE(match.run(deep(256).segments()));
  EXPECT_LE(match.steps(), 256u * glob.size());
}

TEST(GlobBomb, DotsInNamesAreAsManySteps) {
  std::vector<std::string> glob;
  for (int i = 0; i < 60; ++i) glob.insert(glob.end(), {"**", "*", "*", "*"});
  glob.emplace_back("b");
  SegmentMatch match(glob);
  EXPECT_FALSE(match.run(deep(256, std::string(4'000, '.') + "x").segments()));
  EXPECT_LE(match.steps(), 256u * glob.size() * kMaxJoined);
}

/// Without `**`, only kMaxJoined limits how many segments are tried for one name.
TEST(GlobBomb, DotsInNamesForARowOfManySegmentsAreAsManySteps) {
  std::vector<std::string> glob(200, "*");
  glob.insert(glob.begin(), "**");
  glob.emplace_back("b");
  SegmentMatch match(glob);
  EXPECT_FALSE(match.run(deep(32, std::string(300, '.') + "x").segments()));
  EXPECT_LE(match.steps(), 32u * glob.size() * kMaxJoined);
}

TEST(GlobBomb, APatternOfManyDepthsIsRefusedInWords) {
  EXPECT_TRUE(Glob::parse_path("**.a.**.b.**.c.**.d"));
  const auto refused = Glob::parse_path("**.a.**.b.**.c.**.d.**");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "path pattern '**.a.**.b.**.c.**.d.**': '**' stands in it 5 times, at most 4 are allowed; name the members "
            "between them");
}

TEST(GlobBomb, APatternOfManyBytesIsRefusedInWords) {
  const auto refused = Glob::parse_path(std::string(20'000, 'a'));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("20000 bytes, at most 16384 are allowed"), std::string::npos)
      << refused.error().message;
  EXPECT_LT(refused.error().message.size(), 400u);
}

/// Measures processor time, which does not depend on the load of the machine. A quadratic search would take some
/// seconds.
TEST(GlobBomb, NamesAreMatchedInOnePass) {
  const std::string text(8u << 20, 'a'), pattern = "*" + std::string(16'000, 'a') + "b*";
  const std::clock_t begin = std::clock();
  EXPECT_FALSE(wild_match(pattern, text));
  EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC / 2);
}

TEST(PathGlob, KnowsWhichElementsOfAListItMatches) {
  using Elements = Glob::Elements;
  const auto of = [](const char* glob) {
    return Glob::parse_path(glob).value().matches_elements(Path::parse("a.list").value());
  };
  for (const char* none : {"a.list", "a.*", "*", "a.list.name", "**.name", "a.**.name", "b.**", "a.other[*]"}) {
    EXPECT_EQ(of(none), Elements::none) << none;
  }
  for (const char* some : {"a.list[*]", "a.list[0]", "**[3]", "a.*.*", "**.*", "a.list.1*", "a.**[0][1]"}) {
    EXPECT_EQ(of(some), Elements::some) << some;
  }
  for (const char* all : {"**", "a.**", "a.list.**", "*.*.**", "**.list.**"}) EXPECT_EQ(of(all), Elements::all) << all;
}

}  // namespace
}  // namespace driftd::core
