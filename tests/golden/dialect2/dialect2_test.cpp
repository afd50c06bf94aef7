// SPDX-License-Identifier: Apache-2.0
// Dialect 2 of driftd-schema/1 as data: each construct with pairs that are equal and twins that differ, and documents
// that are refused with their place.
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/judge/expected.hpp"
#include "core/value/schema.hpp"

namespace driftd::core {
namespace {

Value load(const char* name) {
  std::ostringstream text;
  text << std::ifstream(std::filesystem::path(DRIFTD_SOURCE_DIR) / "tests/golden/dialect2" / name).rdbuf();
  auto value = parse(text.str());
  EXPECT_TRUE(value) << name << ": " << (value ? "" : value.error().message);
  return value ? *value : Value(Value::Array{});
}

std::string text(const Value& value, std::string_view member) {
  const Value* found = value.find(member);
  return found != nullptr && found->string() != nullptr ? *found->string() : "";
}

/// `one`: a case with its attributes in `schema`, and `complete` if the document is.
std::string document(const Value& one, int dialect) {
  Value::Object out{
      {"schema", Value("driftd-schema/1")}, {"kind", Value("thing")}, {"attributes", *one.find("schema")}};
  if (const auto* complete = one.find("complete")) out.emplace("complete", *complete);
  if (dialect > 1) out.emplace("dialect", Value(Value::Number{std::to_string(dialect)}));
  return render(Value(std::move(out)));
}

std::string verdict(const Difference& difference) {
  std::string out;
  const auto add = [&](const std::string& what) { out += (out.empty() ? "" : "; ") + what; };
  for (const auto& change : difference.changes) add("drift " + change.path);
  for (const auto& unknown : difference.unknown) add("unknown " + unknown.path);
  for (const auto& [path, value, same] : difference.filled) add("filled " + path);
  return out.empty() ? "equal" : out;
}

TEST(DialectTwo, EachConstructHasPairsThatAreEqualAndTwinsThatDiffer) {
  const Value cases = load("cases.json");
  for (const auto& one : *cases.array()) {
    SCOPED_TRACE(text(one, "construct"));
    const auto schema = KindSchema::parse(document(one, 2));
    ASSERT_TRUE(schema) << schema.error().message;
    bool quiet = false, drift = false;
    for (const auto& pair : *one.find("pairs")->array()) {
      const Value &before = *pair.find("old"), &after = *pair.find("new");
      const bool declared = pair.find("declared") != nullptr;
      const Difference found = declared ? diff_expected(expand_declared(before, after, **schema), after, **schema, {})
                                        : diff(before, after, **schema, {});
      EXPECT_EQ(verdict(found), text(pair, "is")) << render(pair);
      (text(pair, "is").find("drift") == std::string::npos ? quiet : drift) = true;
    }
    EXPECT_TRUE(quiet && drift) << "needs a pair of each kind";
  }
}

TEST(DialectTwo, ADifferenceIsFoundInBothDirections) {
  const Value cases = load("cases.json");
  for (const auto& one : *cases.array()) {
    const auto schema = KindSchema::parse(document(one, 2));
    ASSERT_TRUE(schema);
    for (const auto& pair : *one.find("pairs")->array()) {
      if (pair.find("one_way") != nullptr || pair.find("declared") != nullptr) continue;
      const bool there = !diff(*pair.find("old"), *pair.find("new"), **schema, {}).changes.empty();
      const bool back = !diff(*pair.find("new"), *pair.find("old"), **schema, {}).changes.empty();
      EXPECT_EQ(there, back) << text(one, "construct") << " " << render(pair);
    }
  }
}

TEST(DialectTwo, EveryValueEqualsItself) {
  const Value cases = load("cases.json");
  for (const auto& one : *cases.array()) {
    const auto schema = KindSchema::parse(document(one, 2));
    ASSERT_TRUE(schema);
    for (const auto& pair : *one.find("pairs")->array()) {
      for (const auto* side : {"old", "new"}) {
        const Difference found = diff(*pair.find(side), *pair.find(side), **schema, {});
        EXPECT_TRUE(found.changes.empty() && found.filled.empty())
            << text(one, "construct") << " " << render(*pair.find(side)) << ": " << verdict(found);
      }
    }
  }
}

TEST(DialectTwo, ADocumentThatCannotMeanWhatItSaysIsRefusedWithItsPlace) {
  const Value refused = load("refused.json");
  for (const auto& one : *refused.array()) {
    const auto schema = KindSchema::parse(document(one, 2));
    ASSERT_FALSE(schema) << render(one);
    EXPECT_NE(schema.error().message.find(text(one, "error")), std::string::npos)
        << schema.error().message << "\n  expected: " << text(one, "error");
  }
}

TEST(DialectTwo, EachOfItsMembersIsRefusedInDialectOneWithASentence) {
  const Value cases = load("cases.json");
  for (const auto& one : *cases.array()) {
    if (one.find("also_in_dialect_1") != nullptr) continue;
    const auto schema = KindSchema::parse(document(one, 1));
    ASSERT_FALSE(schema) << text(one, "construct");
    EXPECT_NE(schema.error().message.find("thing, attributes"), std::string::npos) << schema.error().message;
  }
}

TEST(DialectTwo, ADocumentOfALaterDialectIsRefused) {
  const auto schema = KindSchema::parse(document(Value(Value::Object{{"schema", Value(Value::Object{})}}), 3));
  ASSERT_FALSE(schema);
  EXPECT_EQ(schema.error().message,
            "schema of thing, dialect: this agent knows 1 to 2, found 3; a newer agent is needed");
}

}  // namespace
}  // namespace driftd::core
