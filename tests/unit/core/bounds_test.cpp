// SPDX-License-Identifier: Apache-2.0
// Hostile values of one attribute cost the agent a limited amount of memory, and at worst the attribute is unknown.
#include <gtest/gtest.h>
#include <functional>

#include "base/digest.hpp"
#include "core/judge/diff.hpp"
#include "core/redact.hpp"
#include "core/value/types.hpp"
#include "support/heap/heap.hpp"

namespace driftd::core {
namespace {

constexpr std::size_t kMi = 1u << 20;
constexpr std::size_t kMaxHeld = 32 * kMi;  ///< maximum of one comparison; two run at a time, and an agent has 64 MiB

std::string repeated(std::string_view part, std::size_t bytes) {
  std::string out;
  out.reserve(bytes + part.size());
  while (out.size() < bytes) out += part;
  return out;
}

/// 3,000 aliases of one scalar: 100 KB that mean 300 MB.
std::string alias_bomb(std::size_t scalar, int aliases) {
  std::string out = "a: &a " + std::string(scalar, 'x') + "\nb: [";
  for (int i = 0; i < aliases; ++i) out += i == 0 ? "*a" : ",*a";
  return out + "]\n";
}

/// Nine levels of ten aliases each, of lists, of maps, or behind merge keys.
std::string laughs(const std::string& open, const std::string& item, const std::string& close) {
  std::string out = "a0: &a0 {k: v, l: w}\n";
  for (int level = 1; level < 10; ++level) {
    out += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " " + open;
    for (int i = 0; i < 10; ++i) {
      std::string each = item;
      if (const auto at = each.find('#'); at != std::string::npos) each.replace(at, 1, std::to_string(i));
      each.replace(each.find('@'), 1, "*a" + std::to_string(level - 1));
      out += (i == 0 ? "" : ", ") + each;
    }
    out += close + "\n";
  }
  return out;
}

/// Each level is anchored and used, so each is kept: 100 levels of one large scalar.
std::string kept_bomb() {
  std::string out = "a: ";
  for (int i = 0; i < 100; ++i) out += "&k" + std::to_string(i) + " [";
  out += std::string(200'000, 'x') + std::string(100, ']') + "\n";
  for (int i = 0; i < 100; ++i) out += "u" + std::to_string(i) + ": *k" + std::to_string(i) + "\n";
  return out;
}

std::string pem_bundle(int certificates) {
  const std::string line = repeated("MIIB", 64) + "\n";
  std::string out;
  for (int i = 0; i < certificates; ++i) out += "-----BEGIN CERTIFICATE-----\n" + line + "-----END CERTIFICATE-----\n";
  return out;
}

struct Bomb {
  const char* name;
  const char* type;
  std::function<std::string()> text;
};
void PrintTo(const Bomb& bomb, std::ostream* out) { *out << bomb.name; }

const Bomb kBombs[] = {
    {"AliasesOfOneScalar", "yaml", [] { return alias_bomb(100'000, 3'000); }},
    {"AliasesIn880KB", "yaml", [] { return alias_bomb(850'000, 10'000); }},
    {"AliasesOfLists", "yaml", [] { return laughs("[", "@", "]"); }},
    {"AliasesOfMaps", "yaml", [] { return laughs("{", "k#: @", "}"); }},
    {"MergeKeys", "yaml", [] { return laughs("[", "{<<: @, n: #}", "]"); }},
    {"KeptAnchors", "yaml", kept_bomb},
    {"AliasedKeys", "yaml",
     [] { return "? &k " + std::string(1'000, 'k') + "\n: [" + repeated("{*k : 1},", 900'000) + "1]"; }},
    {"OpenBrackets", "yaml", [] { return repeated("[", kMi); }},
    {"OpenBraces", "yaml", [] { return repeated("{", kMi); }},
    {"BracketsAndItems", "yaml", [] { return repeated("[a,", kMi); }},
    {"OneFlowList", "yaml", [] { return "[" + repeated("a,", kMi - 8) + "a]"; }},
    {"OneFlowMap", "yaml", [] { return "{" + repeated("a: b,", kMi - 8) + "}"; }},
    {"AnchorsInAFlow", "yaml", [] { return "[" + repeated("&a b,", kMi - 8) + "]"; }},
    {"Tags", "yaml", [] { return repeated("!!a ", kMi - 8); }},
    {"Lines", "yaml", [] { return repeated("- a\n", kMi - 8); }},
    {"Documents", "yaml", [] { return repeated("---\n", kMi - 8); }},
    {"DeepBlocks", "yaml", [] { return repeated("- ", 100'000); }},
    {"JsonBrackets", "json", [] { return repeated("[", kMi); }},
    {"JsonOfOnes", "json", [] { return "[" + repeated("1,", 2 * kMi - 8) + "1]"; }},
    {"JsonOfObjects", "json", [] { return "[" + repeated(R"({"":1},)", 2 * kMi - 16) + "1]"; }},
    {"JsonOf3MiB", "json", [] { return "[" + repeated("1,", 3 * kMi) + "1]"; }},
    {"PropertiesOfManyKeys", "properties",
     [] {
       std::string out;
       for (int i = 0; out.size() < 3 * kMi; ++i) out += std::to_string(i) + "\n";
       return out;
     }},
    {"ContinuedLines", "properties", [] { return repeated("a\\\n", 3 * kMi); }},
    {"Certificates", "pem", [] { return pem_bundle(10'000); }},
    {"BeginsWithoutEnd", "pem", [] { return repeated("-----BEGIN X-----\n", 3 * kMi); }},
    {"VersionOfDots", "version", [] { return "1" + repeated(".1", 3 * kMi); }},
    {"HugeExponent", "decimal", [] { return std::string("1e999999999"); }},
    {"ManyDigits", "decimal", [] { return repeated("7", 3 * kMi); }},
    {"LongDuration", "duration", [] { return repeated("1.1e-4000s", kMi); }},
    {"LongIsoDuration", "duration", [] { return "P" + repeated("1.1e-4000D", kMi); }},
    {"HugeQuantity", "bytes", [] { return std::string("9e4096Ti"); }},
    {"CommaList", "endpoint", [] { return repeated("a,", 3 * kMi); }},
    {"SshLines", "ssh_key", [] { return repeated("ssh-x AAAABXNzaC14AAAAAQ==\n", 3 * kMi); }},
};

class Bounds : public testing::TestWithParam<Bomb> {};

TEST_P(Bounds, OneAttributeCostsABoundedPieceOfMemory) {
  const auto& bomb = GetParam();
  const bool list = std::string(bomb.type) == "endpoint";
  const auto schema =
      KindSchema::parse(std::string(R"({"schema":"driftd-schema/1","kind":"thing","attributes":{"x":{"type":")") +
                        bomb.type + "\"" + (list ? R"(,"collection":"set")" : "") + "}}}")
          .value();
  const Value before(Value::Object{{"x", Value("1")}, {"y", Value("1")}});
  const Value after(Value::Object{{"x", Value(bomb.text())}, {"y", Value("2")}});
  const test::HeapPeak peak;
  const auto found = diff(before, after, *schema, {});
  EXPECT_LE(peak.bytes(), kMaxHeld) << peak.bytes() / kMi << " MiB";
  // the other attribute is judged as usual, and this one is a change or unknown, never ignored
  ASSERT_EQ(found.changes.size() + found.unknown.size(), 2u);
  EXPECT_EQ(found.changes.back().path, "y");
}

INSTANTIATE_TEST_SUITE_P(Every, Bounds, testing::ValuesIn(kBombs),
                         [](const auto& info) { return std::string(info.param.name); });

std::shared_ptr<const KindSchema> yaml_schema() {
  return KindSchema::parse(R"({"schema":"driftd-schema/1","kind":"thing","attributes":{"x":{"type":"yaml"}}})").value();
}

TEST(Unreadable, YamlWithAQuoteThatIsNotClosedIsNoValue) {
  for (const char* text : {"a: \"x\nb: 1\n", "a: 'x\nb: 1\n  ", "'\n", "--- 'a\n\n", "- a\n- \"\n"})
    EXPECT_FALSE(types::yaml(text)) << text;
  for (const char* text : {"a: 'x'\nb: 1\n", "--- |\n  'a\n", "# '\n", "a: b'\n", "--- 'a'\n...\n"})
    EXPECT_TRUE(types::yaml(text)) << text;
  EXPECT_EQ(types::yaml("--- |\n  'a\n").value(), Value("'a\n"));
}

TEST(Unreadable, WhatIsBeyondTheBoundsIsUnknownWithItsReason) {
  const Value before = parse(R"({"x":"a: 1"})").value();
  const Value after(Value::Object{{"x", Value(alias_bomb(100'000, 3'000))}});
  std::vector<Step> steps;
  DiffOptions options;
  options.trace = &steps;
  for (const auto& found :
       {diff(before, after, *yaml_schema(), options), diff(after, before, *yaml_schema(), options)}) {
    EXPECT_TRUE(found.changes.empty());
    ASSERT_EQ(found.unknown.size(), 1u);
    EXPECT_EQ(found.unknown[0].reason.find("cannot be compared: YAML: "), 0u) << found.unknown[0].reason;
  }
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].verdict, "unknown");
  EXPECT_EQ(steps[0].reason, steps[1].reason);
}

TEST(Unreadable, TheSameBytesAreEqualWhateverTheyMean) {
  const Value both(Value::Object{{"x", Value(alias_bomb(100'000, 3'000))}});
  const auto found = diff(both, both, *yaml_schema(), {});
  EXPECT_TRUE(found.changes.empty());
  EXPECT_TRUE(found.unknown.empty());
}

TEST(Unreadable, WhatComesOrGoesIsAChangeAlsoWhereItsTextIsBeyondTheBounds) {
  const Value nothing(Value::Object{}), bomb(Value::Object{{"x", Value(alias_bomb(100'000, 3'000))}});
  EXPECT_EQ(diff(nothing, bomb, *yaml_schema(), {}).changes.size(), 1u);
  EXPECT_EQ(diff(bomb, nothing, *yaml_schema(), {}).changes.size(), 1u);
}

TEST(Unreadable, AMachineWithoutMemoryLeavesTheAttributeUnknown) {
  AttributeRule rule;
  rule.type = ValueType::yaml;
  const Value value(repeated("- a\n", 200'000));
  const test::HeapLimit limit(kMi);
  const auto normal = normalise(rule, value);
  ASSERT_FALSE(normal);
  EXPECT_EQ(normal.error().code, Code::budget);
}

/// A digest is two values in place of one. A record that the worker accepts must not fail in the agent.
TEST(Unreadable, WhatTheWorkerTakesTheAgentTakesToo) {
  std::string body = R"({"s":[1)";
  for (int i = 0; i < 45'000; ++i) body += ",1";
  body += "]}";
  const auto schema =
      KindSchema::parse(R"({"schema":"driftd-schema/1","kind":"thing","attributes":{"s[*]":{"sensitive":true}}})")
          .value();
  const auto redacted = redact(body, {"thing", "id"}, *schema, {}, {"aaaaaaaa", {}});
  ASSERT_TRUE(redacted);
  EXPECT_TRUE(seal(*redacted, {"bbbbbbbb", {}}));
  std::string more = R"({"s":[1)";
  for (int i = 0; i < 100'000; ++i) more += ",1";
  const auto refused = redact(more + "]}", {"thing", "id"}, *schema, {}, {"aaaaaaaa", {}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::budget);
}

TEST(Unreadable, WhatPeopleWriteIsReadAsEver) {
  AttributeRule rule;
  rule.type = ValueType::yaml;
  const auto normal = [&](const std::string& text) { return normalise(rule, Value(text)).value_or("refused"); };
  EXPECT_EQ(normal("base: &b {a: 1, b: [x, y]}\none: *b\ntwo: {<<: *b, c: '2'}\n"),
            R"({"base":{"a":1,"b":["x","y"]},"one":{"a":1,"b":["x","y"]},"two":{"<<":{"a":1,"b":["x","y"]},"c":"2"}})");
  EXPECT_EQ(normal("? &k name\n: 1\nother: {*k : 2}\n"), R"({"name":1,"other":{"name":2}})");
  EXPECT_EQ(normal("&a [1, *a]"), "refused");
  EXPECT_EQ(normal("&a x: 1\ny: &a 2\nz: *a"), R"({"x":1,"y":2,"z":2})");
  EXPECT_EQ(normal("--- &a 1\n--- &a 2\n--- [&b 3, *b]\n"), "[1,2,[3,3]]");
  EXPECT_NE(normal("text: |\n" + repeated("  \"title\": \"Requests\", \"type\": \"graph\",\n", 900'000)), "refused");
  EXPECT_NE(normal("list:\n" + repeated("  - name: some\n    value: \"other\"\n", 600'000)), "refused");
  EXPECT_NE(normal("[" + repeated(R"({"name": "some", "labels": {"app": "other"}},)", 400'000) + "1]"), "refused");
}

/// An error quotes the refused text. If the quote ended inside a character, a JSON document with the error would not be
/// valid.
TEST(Refusals, AreTextWhereverTheyCutWhatTheyQuote) {
  const auto is_text = [](const Error& error) { return parse(render(Value(error.message))).has_value(); };
  for (std::size_t pad = 0; pad < 4; ++pad) {
    const std::string name = std::string(pad, 'x') + repeated("\u20ac", 600);
    AttributeRule rule;
    for (int type = 0; type <= static_cast<int>(ValueType::enumeration); ++type) {
      rule.type = static_cast<ValueType>(type);
      for (const std::string& text : {name, "\"" + name + "\": 1\n\"" + name + "\": 2\n", "[" + name}) {
        const auto normal = normalise(rule, Value(text));
        EXPECT_TRUE(normal || is_text(normal.error())) << type << " " << pad;
      }
    }
    for (const std::string& json :
         {R"({")" + name + R"(":1,")" + name + R"(":2})", "1" + name, "[1" + name + "]", name}) {
      const auto value = parse(json);
      ASSERT_FALSE(value);
      EXPECT_TRUE(is_text(value.error())) << value.error().message;
    }
    const auto path = Path::parse("a.[" + name);
    ASSERT_FALSE(path);
    EXPECT_TRUE(is_text(path.error())) << path.error().message;
    const auto glob = Glob::parse_path("a[" + name);
    ASSERT_FALSE(glob);
    EXPECT_TRUE(is_text(glob.error())) << glob.error().message;
  }
}

}  // namespace
}  // namespace driftd::core
