// SPDX-License-Identifier: Apache-2.0
// Golden cases as data: cases/*.json hold pairs of bodies that are the same or different under a schema.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

#include "core/diff.hpp"

namespace driftd::core {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(DRIFTD_SOURCE_DIR) / "tests/golden/equality";

Value load(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  auto value = parse(text.str());
  EXPECT_TRUE(value) << file << ": " << (value ? "" : value.error().message);
  return value ? *value : Value(Value::Object{});
}

std::string text(const Value& value, std::string_view member) {
  const Value* found = value.find(member);
  return found && found->string() ? *found->string() : "";
}
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
  Value::Object document{{"schema", Value("driftd-schema/1")}, {"kind", Value("thing")}, {"attributes", attributes ? *attributes : Value(Value::Object{})}};
  if (const int revision = number(file, "revision", 1); revision > 1) document.emplace("revision", Value(Value::Number{std::to_string(revision)}));
  auto schema = KindSchema::parse(render(Value(std::move(document))));
  EXPECT_TRUE(schema) << (schema ? "" : schema.error().message);
  return schema ? *schema : KindSchema::unknown("thing");
}

DiffOptions options_of(const Value& pair) {
  DiffOptions out;
  out.old_revision = static_cast<std::uint32_t>(number(pair, "old_revision", 1));
  out.declared_only = pair.find("declared") != nullptr;
  for (const auto& path : list(pair, "unread")) out.unread.push_back({*path.string(), Code::denied, "denied"});
  for (const auto& path : list(pair, "was_unread")) out.was_unread.push_back(*path.string());
  return out;
}

/// `drift a.b; unknown c; filled d`, or `equal`.
std::string verdict(const Difference& difference) {
  std::string out;
  for (const auto& change : difference.changes) out += (out.empty() ? "" : "; ") + ("drift " + change.path);
  for (const auto& unknown : difference.unknown) out += (out.empty() ? "" : "; ") + ("unknown " + unknown.path);
  for (const auto& [path, value] : difference.filled) out += (out.empty() ? "" : "; ") + ("filled " + path);
  return out.empty() ? "equal" : out;
}

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder / "cases")) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
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
    EXPECT_EQ(verdict(diff(*before, *after, *schema, options_of(pair))), expected) << render(pair);
    (expected.find("drift ") == std::string::npos ? quiet : drift) = true;
  }
  EXPECT_TRUE(quiet) << "no pair that is no drift";
  EXPECT_TRUE(drift) << "no true-drift twin";
}

INSTANTIATE_TEST_SUITE_P(Cases, Equality, testing::ValuesIn(files()), [](const auto& info) {
  std::string name = info.param.stem().string();
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST(EqualityCatalogue, EveryFalseDriftClassHasACaseOrAReasonWhyItIsNoQuestionOfEquality) {
  std::set<int> covered;
  auto all = files();
  for (const auto& entry : std::filesystem::directory_iterator(kFolder / "stories")) all.push_back(entry.path());
  for (const auto& file : all) {
    const int id = number(load(file), "class", 0);
    EXPECT_TRUE(id >= 1 && id <= 59) << file << ": class must be 1 to 59";
    covered.insert(id);
  }
  const Value elsewhere = load(kFolder / "elsewhere.json");
  for (const auto& [id, reason] : *elsewhere.object()) {
    EXPECT_TRUE(reason.string() && reason.string()->size() > 10) << "class " << id << " has no reason";
    EXPECT_TRUE(covered.insert(std::stoi(id)).second) << "class " << id << " has a case and a reason";
    EXPECT_TRUE(std::stoi(id) >= 1 && std::stoi(id) <= 59) << "unknown class " << id;
  }
  for (int id = 1; id <= 59; ++id) EXPECT_TRUE(covered.contains(id)) << "class " << id << " is missing";
}

}  // namespace
}  // namespace driftd::core
