// SPDX-License-Identifier: Apache-2.0
// Golden cases as data: cases/*.json hold pairs of bodies that are the same or different under a schema.
#include <gtest/gtest.h>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "core/judge/declaration.hpp"
#include "core/judge/expected.hpp"
#include "core/value/schema.hpp"
#include "files.hpp"

namespace driftd::core {
namespace {

int number(const Value& value, std::string_view member, int otherwise) {
  const Value* found = value.find(member);
  if (found == nullptr || found->number() == nullptr) return otherwise;
  int out = otherwise;
  std::from_chars(found->number()->token.data(), found->number()->token.data() + found->number()->token.size(), out);
  return out;
}
Value::Array list(const Value& value, std::string_view member) {
  const Value* found = value.find(member);
  return found && found->array() ? *found->array() : Value::Array{};
}

std::shared_ptr<const KindSchema> schema_of(const Value& file) {
  const Value* attributes = file.find("schema");
  Value::Object document{{"schema", Value("driftd-schema/1")},
                         {"kind", Value("thing")},
                         {"attributes", attributes ? *attributes : Value(Value::Object{})}};
  if (const int revision = number(file, "revision", 1); revision > 1)
    document.emplace("revision", Value(Value::Number{std::to_string(revision)}));
  auto schema = KindSchema::parse(render(Value(std::move(document))));
  EXPECT_TRUE(schema) << (schema ? "" : schema.error().message);
  return schema ? *schema : KindSchema::unknown("thing");
}

DiffOptions options_of(const Value& pair) {
  DiffOptions out;
  out.old_revision = static_cast<std::uint32_t>(number(pair, "old_revision", 1));
  for (const auto& path : list(pair, "unread")) out.unread.push_back({*path.string(), Code::denied, "denied"});
  for (const auto& path : list(pair, "was_unread")) out.was_unread.push_back(*path.string());
  return out;
}

/// `drift a.b; unknown c; filled d`, or `equal`.
std::string verdict(const Difference& difference) {
  std::string out;
  for (const auto& change : difference.changes) out += (out.empty() ? "" : "; ") + ("drift " + change.path);
  for (const auto& unknown : difference.unknown) out += (out.empty() ? "" : "; ") + ("unknown " + unknown.path);
  for (const auto& [path, value, same] : difference.filled) out += (out.empty() ? "" : "; ") + ("filled " + path);
  return out.empty() ? "equal" : out;
}

class Equality : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Equality, EveryPairHasItsVerdict) {
  const Value file = load(GetParam());
  EXPECT_NE(text(file, "name"), "");
  EXPECT_NE(text(file, "sentence"), "");
  const auto schema = schema_of(file);
  bool quiet = false, drift = false;
  for (const auto& pair : list(file, "pairs")) {
    const Value* before = pair.find("old");
    const Value* after = pair.find("new");
    ASSERT_TRUE(before && after) << render(pair);
    const std::string expected = text(pair, "is");
    ASSERT_NE(expected, "") << render(pair);
    const bool declared = pair.find("declared") != nullptr;
    const Difference difference = declared ? diff_expected({{Path{}, *before}}, *after, *schema, options_of(pair))
                                           : diff(*before, *after, *schema, options_of(pair));
    EXPECT_EQ(verdict(difference), expected) << render(pair);
    (expected.find("drift ") == std::string::npos ? quiet : drift) = true;
  }
  EXPECT_TRUE(quiet) << "no pair that is no drift";
  EXPECT_TRUE(drift) << "no true-drift twin";
}

INSTANTIATE_TEST_SUITE_P(Cases, Equality, testing::ValuesIn(files("cases")), name_of_file);

/// Names of the test suites in tests/golden/providers with how many pairs (expectations) each holds that are no drift,
/// and that are.
std::map<std::string, std::pair<int, int>> raw_suites() {
  std::map<std::string, std::pair<int, int>> out;
  std::string name;
  std::ifstream file(kFolder.parent_path() / "providers" / "raw_test.cpp");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("TEST(")) name = "golden." + line.substr(5, line.find(',') - 5);
    if (line.find("EXPECT_THAT(changed(") == std::string::npos && line.find("EXPECT_THAT(acl(") == std::string::npos)
      continue;
    const bool quiet = line.find(", IsEmpty())") != std::string::npos;
    ++(quiet ? out[name].first : out[name].second);
  }
  // Which of two records is older is said by the agent's monotonic clock, so the ledger drops, not the judge.
  std::ifstream order(kFolder.parent_path().parent_path() / "unit" / "engine" / "clock_test.cpp");
  for (std::string line; std::getline(order, line);) {
    if (line.starts_with("TEST")) name = "unit." + line.substr(line.find('(') + 1, line.find(',') - line.find('(') - 1);
    if (line.find(".dropped, 1u)") != std::string::npos) ++out[name].first;
    if (line.find(".dropped, 0u)") != std::string::npos) ++out[name].second;
  }
  return out;
}

struct Row {
  std::string name, where;
  int quiet = 0, drift = 0;
};

/// Verdicts that are no drift: equal, filled, unknown, dropped, quiet. Those of a sequence's steps count one by one.
void count(const Value& from, Row& row) {
  for (const auto& pair : list(from, "pairs")) {
    const std::string is = text(pair, "is");
    const bool quiet = is.find("drift ") == std::string::npos && is.find("changed") == std::string::npos &&
                       is.find("deleted") == std::string::npos && is.find("created") == std::string::npos;
    ++(quiet ? row.quiet : row.drift);
  }
  for (const auto& sequence : list(from, "sequences")) {
    for (const auto& step : *sequence.array()) {
      if (step.find("sees") != nullptr) ++(text(step, "is") == "quiet" ? row.quiet : row.drift);
    }
  }
}

TEST(EqualityCatalogue, EachOfThe59ClassesHasAPairThatIsNoDriftAndATwinThatIs) {
  std::map<int, Row> table;
  auto all = files("cases");
  for (const auto& story : files("stories")) all.push_back(story);
  for (const auto& file : all) {
    const Value read = load(file);
    const int id = number(read, "class", 0);
    EXPECT_TRUE(id >= 1 && id <= 59) << file << ": class must be 1 to 59";
    Row& row = table[id];
    row.name = text(read, "name");
    row.where = file.parent_path().filename();
    count(read, row);
  }
  const auto suites = raw_suites();
  const Value elsewhere = load(kFolder / "elsewhere.json");
  for (const auto& [id, entry] : *elsewhere.object()) {
    EXPECT_GT(text(entry, "why").size(), 10u) << "class " << id << " has no reason";
    const auto found = suites.find(text(entry, "pairs"));
    ASSERT_TRUE(found != suites.end()) << "class " << id << ": no test " << text(entry, "pairs");
    EXPECT_FALSE(table.contains(std::stoi(id))) << "class " << id << " has a case and a reason why it has none";
    table[std::stoi(id)] = {text(entry, "why"), text(entry, "pairs"), found->second.first, found->second.second};
  }
  for (const auto& [id, row] : table) {
    std::cout << id << "\t" << row.quiet << " no drift\t" << row.drift << " drift\t" << row.where << "\t" << row.name
              << "\n";
    EXPECT_GT(row.quiet, 0) << "class " << id << ": no pair that is no drift";
    EXPECT_GT(row.drift, 0) << "class " << id << ": no true-drift twin";
  }
  EXPECT_EQ(table.size(), 59u);
}

}  // namespace
}  // namespace driftd::core
