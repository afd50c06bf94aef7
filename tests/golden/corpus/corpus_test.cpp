// SPDX-License-Identifier: Apache-2.0
// Pairs of bodies of real resource types, under the schemas of examples/schemas: what is noise and what is a change.
#include <algorithm>
#include <iostream>
#include <map>

#include "golden/corpus/pairs.hpp"

namespace driftd::core {
namespace {

const std::filesystem::path kSource = DRIFTD_SOURCE_DIR;

namespace fs = std::filesystem;

constexpr int kHardPairsAsWanted = 135;  ///< of *.hard.json

/// `hard`: the pairs that the dialect could not express when they were written.
std::vector<fs::path> corpus(bool hard = false) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "tests/golden/corpus")) {
    if (entry.path().extension() == ".json" && (entry.path().stem().extension() == ".hard") == hard)
      out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Corpus : public testing::TestWithParam<fs::path> {};

TEST_P(Corpus, EveryPairHasItsVerdict) {
  const Value file = load(GetParam());
  const auto schema = schema_of(kSource, file);
  ASSERT_TRUE(schema) << GetParam() << ": " << schema.error().message;
  const Value* pairs = file.find("pairs");
  ASSERT_TRUE(pairs != nullptr && pairs->array() != nullptr);
  int quiet = 0, drift = 0;
  for (const auto& pair : *pairs->array()) {
    ASSERT_TRUE(pair.find("old") != nullptr && pair.find("new") != nullptr) << render(pair);
    std::vector<Step> steps;
    EXPECT_EQ(verdict(compare(pair, *pair.find("old"), *pair.find("new"), **schema, steps)), text(pair, "is"))
        << text(pair, "name") << explanation(steps);
    ++(text(pair, "is").find("drift") == std::string::npos ? quiet : drift);
  }
  EXPECT_GT(quiet, 0);
  EXPECT_GT(drift, 0) << "no twin that is a change";
}

std::string name_of(const testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.parent_path().filename().string() + "_" + info.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Types, Corpus, testing::ValuesIn(corpus()), name_of);

/// The table of the corpus: systems, types, and how many pairs of each verdict come out wrong.
TEST(CorpusTable, NothingCriesAndNothingIsMissed) {
  struct Row {
    int types = 0, quiet = 0, drift = 0, cried = 0, missed = 0;
  };
  std::map<std::string, Row> table;
  for (const auto& path : corpus()) {
    const Value file = load(path);
    const auto schema = schema_of(kSource, file);
    ASSERT_TRUE(schema) << path;
    Row& row = table[path.parent_path().filename().string()];
    ++row.types;
    for (const auto& pair : *file.find("pairs")->array()) {
      std::vector<Step> steps;
      const bool wants_drift = text(pair, "is").find("drift") != std::string::npos;
      const bool cries = !compare(pair, *pair.find("old"), *pair.find("new"), **schema, steps).changes.empty();
      ++(wants_drift ? row.drift : row.quiet);
      row.cried += cries && !wants_drift;
      row.missed += !cries && wants_drift;
    }
  }
  Row sum;
  for (const auto& [system, row] : table) {
    std::cout << system << ": " << row.types << " types, " << row.quiet << " pairs of noise, " << row.cried
              << " cried; " << row.drift << " changes, " << row.missed << " missed\n";
    sum = {sum.types + row.types, sum.quiet + row.quiet, sum.drift + row.drift, sum.cried + row.cried,
           sum.missed + row.missed};
  }
  std::cout << "all: " << sum.types << " types, " << sum.quiet + sum.drift << " pairs\n";
  EXPECT_EQ(sum.cried, 0);
  EXPECT_EQ(sum.missed, 0);
}

/// Pairs that the dialect cannot express yet, each with its reason. More of them may come out as wanted, never fewer.
TEST(CorpusTable, HardPairsComeOutAsWantedAtLeastAsOftenAsBefore) {
  int pairs = 0, wanted = 0;
  for (const auto& path : corpus(true)) {
    const Value file = load(path);
    const auto schema = schema_of(kSource, file);
    ASSERT_TRUE(schema) << path;
    for (const auto& pair : *file.find("pairs")->array()) {
      EXPECT_NE(text(pair, "why"), "") << path << " " << text(pair, "name");
      std::vector<Step> steps;
      const bool as_wanted =
          verdict(compare(pair, *pair.find("old"), *pair.find("new"), **schema, steps)) == text(pair, "is");
      ++pairs;
      wanted += as_wanted;
    }
  }
  std::cout << wanted << " of " << pairs << " hard pairs come out as wanted\n";
  EXPECT_GE(wanted, kHardPairsAsWanted);
}

}  // namespace
}  // namespace driftd::core
