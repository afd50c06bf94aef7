// SPDX-License-Identifier: Apache-2.0
// Texts that only look the same, texts that a server prints in another form, and texts that cost a lot to read.
#include <gtest/gtest.h>
#include <chrono>
#include <random>

#include "core/judge/diff.hpp"
#include "core/value/schema.hpp"
#include "support/patience.hpp"

namespace driftd::core {
namespace {

struct Pair {
  std::string before, after;
};

/// Returns the verdict over two texts under a rule such as `"type":"sql"`: equal, drift or unknown.
std::string verdict(const std::string& rule, const std::string& before, const std::string& after) {
  const auto schema =
      KindSchema::parse(R"({"schema":"driftd-schema/1","kind":"thing","dialect":2,"attributes":{"v":{)" + rule + "}}}");
  if (!schema) return schema.error().message;
  const Difference found =
      diff(Value(Value::Object{{"v", Value(before)}}), Value(Value::Object{{"v", Value(after)}}), **schema, {});
  if (!found.changes.empty()) return "drift";
  return found.unknown.empty() ? "equal" : "unknown";
}

void expect_both_ways(const std::string& rule, const std::vector<Pair>& pairs, const std::string& expected) {
  for (const auto& [before, after] : pairs) {
    EXPECT_EQ(verdict(rule, before, after), expected) << before << "\n" << after;
    EXPECT_EQ(verdict(rule, after, before), expected) << after << "\n" << before;
  }
}

/// Returns how long a comparison of two texts takes, in seconds.
double seconds(const std::string& rule, const std::string& before, const std::string& after) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(verdict(rule, before, after), "drift");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

const std::string kSql = R"("type":"sql")";
const std::string kHcl = R"("type":"hcl")";

TEST(Sql, AQuotedNameIsNoConstantNumberOrReservedWord) {
  expect_both_ways(kSql,
                   {{"owner = current_user", "owner = \"current_user\""},
                    {"x = true", "x = \"true\""},
                    {"x = null", "x = \"null\""},
                    {"tenant = 1", "tenant = \"1\""},
                    {"select user from t", "select \"user\" from t"},
                    {"coalesce(a, b)", "\"coalesce\"(a, b)"},
                    {"x = 'a'::char", "x = 'a'::\"char\""},
                    {"\"A\" = 1", "a = 1"}},
                   "drift");
  expect_both_ways(kSql, {{"Owner = 1", "\"owner\" = 1"}, {"\"name\" = 'x'", "name = 'x'"}}, "equal");
}

TEST(Sql, CommentsEndWhereTheServerEndsThem) {
  expect_both_ways(
      kSql,
      {{"a = 1", "a = 1 --x\r or true"}, {"a = 1 or true", "a = 1 /* /* */ or true -- */"}, {"a = 1", "a = 1 /* x"}},
      "drift");
  expect_both_ways(kSql, {{"a = 1", "a /* b /* c */ */ = 1 -- d"}, {"a = 1 or b", "a = 1 --x\r or b"}}, "equal");
}

TEST(Sql, NotNullIsNotTheOppositeOfNullForRows) {
  expect_both_ways(kSql,
                   {{"(a,b) is not null", "not ((a,b) is null)"},
                    {"a is not null", "not a is null"},
                    {"a is not null", "a is null"}},
                   "drift");
  expect_both_ways(kSql, {{"a is not null", "(a IS NOT NULL)"}, {"a is not true", "(NOT (a IS TRUE))"}}, "equal");
}

TEST(Sql, CastsThatChangeTheValueCount) {
  expect_both_ways(kSql,
                   {{"x = 1.5", "x = 1.5::int"},
                    {"x > '2024-01-01 10:00'::timestamp", "x > '2024-01-01 10:00'::date"},
                    {"x = 'abcdef'::varchar(3)", "x = 'abcdef'"},
                    {"x = 'abcdef'::char", "x = 'abcdef'"},
                    {"x = 5::bit(2)", "x = 5"},
                    {"x = 5::text", "x = 5"},
                    {"x = 'y'::boolean::text", "x = 'y'"},
                    {"x = 'ABC'::uuid::text", "x = 'ABC'"},
                    {"x = 1.25::numeric(3,1)", "x = 1.25"},
                    {"x = any (array['1','01']::int[])", "x = any (array['1','01']::text[])"},
                    {"x / 2", "x / 2.0"}},
                   "drift");
}

TEST(Sql, CastsThatTheServerAddsDoNotCount) {
  expect_both_ways(
      kSql,
      {{"email = 'A'", "((email)::text = 'A'::text)"},
       {"c = 'a'", "(c = 'a'::bpchar)"},
       {"d > '2024-01-01'", "(d > '2024-01-01'::date)"},
       {"s = 'open'", "(s = 'open'::public.status)"},
       {"x = 'true'::boolean", "(x = true)"},
       {"x > 0.1", "(x > (0.1)::double precision)"},
       {"x > 1.5 and y = -1.50", "((x > 1.5) AND (y = '-1.50'::numeric))"},
       {"coalesce(a, null)", "COALESCE(a, NULL::character varying)"},
       {"x::int = 1", "((x)::integer = 1)"},
       {"x::timestamptz > now()", "((x)::timestamp with time zone > now())"},
       {"x in ('a', 'b')", "((x)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))"}},
      "equal");
}

TEST(Sql, OperatorsAndNumbersAreReadAsTheServerReadsThem) {
  expect_both_ways(kSql, {{"a #- '{x}'", "a # -'{x}'"}, {"a = 1e-5", "a = 1e - 5"}, {"a = 1", "a = .1"}}, "drift");
  expect_both_ways(kSql,
                   {{"a = .5", "a = 0.5"},
                    {"a = 1e-5", "a = 0.00001"},
                    {"a*-1 = b", "a * (-1) = b"},
                    {"a<-1", "a < '-1'::integer"},
                    {"row(a,b) = row(1,2)", "(a,b) = (1,2)"},
                    {"a > now() - interval '1 day'", "(a > (now() - '1 day'::interval))"},
                    {"d > date '2024-01-01'", "(d > '2024-01-01'::date)"},
                    {"x in ('a')", "(x = 'a'::text)"},
                    {"x not in ('a')", "(x <> 'a'::text)"}},
                   "equal");
}

TEST(Sql, BetweenIsTwoComparisons) {
  expect_both_ways(kSql,
                   {{"a and x between 1 and 2 and b", "(a AND ((x >= 1) AND (x <= 2)) AND b)"},
                    {"x not between 1 and 2", "((x < 1) OR (x > 2))"},
                    {"not x between 1 and 2", "x not between 1 and 2"}},
                   "equal");
  expect_both_ways(kSql,
                   {{"x between 1 and 2", "x >= 1 and y <= 2"},
                    {"x between 1 and 2", "x between 1 and 3"},
                    {"x between 1 and 2", "x not between 1 and 2"}},
                   "drift");
}

TEST(Sql, ATextThatRepeatsItselfIsReadInTime) {
  EXPECT_LT(seconds(kSql, "a" + repeated(" between 1 and 2", 900), "b" + repeated(" between 1 and 2", 900)), 2);
  EXPECT_LT(seconds(kSql, repeated("x", 10'000) + repeated(" between 1 and 2", 1'000),
                    repeated("y", 10'000) + repeated(" between 1 and 2", 900)),
            2);
  const std::string name(400, 'n');
  EXPECT_LT(seconds(kSql, "a" + repeated(" and " + name, 2'400), "b" + repeated(" and " + name, 2'400)), 2);
  EXPECT_LT(seconds(kSql, name + name + repeated("+" + name, 2'400), repeated(name + "+", 2'400) + "1"), 2);
}

TEST(Sql, ALongRunOfOperatorsOrTestsIsReadInTime) {
  EXPECT_LT(seconds(kSql, "a" + repeated(" is null", 2'400), "b" + repeated(" is not true", 1'600)), 1);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(verdict(kSql, repeated("+", 900'000), "a"), "unknown");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(Hcl, AnExpressionIsNoObjectAndATemplateNoText) {
  expect_both_ways(kHcl,
                   {{"a = f(1)", R"x(a = {"$expression" = "f(1)"})x"},
                    {"a = f(1)", R"x({"a": {"$expression": "f(1)"}})x"},
                    {R"(a = "\u0024{v}")", R"(a = "${v}")"},
                    {R"(a = "\${v}")", R"(a = "${v}")"},
                    {R"(a = "$\u007bv}")", R"(a = "${v}")"},
                    {R"(a = "\u0024${v}")", R"(a = "$${v}")"}},
                   "drift");
  expect_both_ways(kHcl, {{R"(a = "\u0024{v}")", R"(a = "$${v}")"}, {R"(a = "\u0041")", R"(a = "A")"}}, "equal");
}

TEST(Hcl, AnAttributeIsNoBlock) {
  expect_both_ways(kHcl,
                   {{"a = [{x=1}]", "a { x = 1 }"},
                    {"a = {b = [{x=1}]}", "a \"b\" { x = 1 }"},
                    {"c { a = [{x=1}] }", "c {\na { x = 1 }\n}"},
                    {"a = null\na { x = 1 }", "a { x = 1 }"},
                    {"a = [{x=1}]\na { x = 1 }", "a { x = 1 }\na { x = 1 }"}},
                   "drift");
  expect_both_ways(kHcl, {{R"({"a": [{"x": 1}]})", "a { x = 1 }"}, {R"({"a": ["x"]})", "a = [\"x\"]"}}, "equal");
}

TEST(Hcl, WhatHasNoEndIsNotRead) {
  expect_both_ways(kHcl, {{"a = 1", "a = 1 /* x"}, {"a = 1\n", "a = 1\n/* b = 2"}, {"a = f(1)", "a = f(1) /*"}},
                   "drift");
}

TEST(Hcl, AHeredocInACallIsAText) {
  expect_both_ways(
      kHcl, {{"a = f(<<E\nx  y\nE\n)", "a = f(<<E\nx y\nE\n)"}, {"a = f(<<E\n# x\nE\n)", "a = f(<<E\nE\n)"}}, "drift");
  expect_both_ways(kHcl, {{"a = f(<<E\nx\nE\n)", "a = f( <<E\nx\nE\n )"}}, "equal");
}

TEST(Hcl, AMegabyteIsReadInTime) {
  std::string calls, heredocs;
  for (int i = 0; i < 70'000; ++i) {
    calls += "a" + std::to_string(i) + " = f(1)\n";
    heredocs += "a" + std::to_string(i) + " = <<E" + std::to_string(i) + "\n";
  }
  EXPECT_LT(seconds(kHcl, calls, calls + "}"), 2 * test::kPatience);
  EXPECT_LT(seconds(kHcl, calls, heredocs), 2 * test::kPatience);
  EXPECT_LT(seconds(kHcl, calls, "a = [" + repeated("<<E\n", 200'000)), 2 * test::kPatience);
}

TEST(Hcl, ANestedTextThatIsReadAgainAndAgainIsUnknown) {
  const std::string text = "a = " + repeated("[", 60) + "<<E\n" + repeated("x\n", 500'000) + "E\n,\n}";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(verdict(kHcl, text, "a = 1"), "unknown");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2 * test::kPatience));
}

TEST(Reference, OnlyAnImageFamilyIsContinued) {
  const std::string image = R"("type":"reference","unit":"image")";
  const std::string exact = "projects/p/global/images/", family = exact + "family/";
  expect_both_ways(image,
                   {{exact + "web-1", exact + "web-1-evil"},
                    {family + "web", family + "web-evil"},
                    {"p/web", "evil/p/web-1"},
                    {"p/web", "projects/q/global/images/web-1"},
                    {family + "web", exact + "website"},
                    {"web", "web-1"},
                    {"family/web", "projects/q/global/images/family/web-1"}},
                   "drift");
  expect_both_ways(image,
                   {{"p/web", exact + "web-1"},
                    {"web", exact + "web-1"},
                    {"web-1", exact + "web-1"},
                    {"family/web", "https://www.googleapis.com/compute/v1/" + exact + "web-1"},
                    {family + "web", exact + "web-1"},
                    {family + "web", "p/web"}},
                   "equal");
}

TEST(Reference, OnlyASingleLabelIsRelative) {
  const std::string domain = R"("type":"reference","unit":"domain")";
  expect_both_ways(domain, {{"www.example.com", "www.example.com.evil.net"}, {"@", "@.evil"}, {"w", "www.example.com"}},
                   "drift");
  expect_both_ways(domain, {{"www", "www.example.com"}, {"WWW.example.com.", "www.example.com"}}, "equal");
}

TEST(Version, AWildcardFollowsNumbersOfTheExpectedSide) {
  const std::string version = R"("type":"version","unit":"declared")";
  for (const auto& [before, after] : std::vector<Pair>{
           {"1", "x.evil"}, {"1.2.3", "*"}, {"*", "1.2.3"}, {"1.2.3", "1.2.x"}, {"1.x.3", "1.2.3"}, {"3.x", "3.evil"}})
    EXPECT_EQ(verdict(version, before, after), "drift") << before << " " << after;
  for (const auto& [before, after] :
       std::vector<Pair>{{"3.x", "3.7.2"}, {"3.7.*", "3.7.2"}, {"3.X.x", "3.7.2"}, {"1.2", "1.2.3"}, {"3.x", "3.x"}})
    EXPECT_EQ(verdict(version, before, after), "equal") << before << " " << after;
}

TEST(TextsProperty, AnyRowOfWordsIsReadOrRefusedAndEqualsItself) {
  const std::vector<std::string> words = {
      "a",     "b.c",      "\"user\"", "'x'",  "1",    ".5",   "1e-5",  "(",       ")",        "[",      "]",
      ",",     "and",      "or",       "not",  "is",   "null", "true",  "between", "in",       "any",    "all",
      "array", "row",      "case",     "when", "then", "else", "end",   "::",      "int",      "text[]", "varchar(3)",
      "date",  "interval", "=",        "<>",   "<=",   ">=",   "-",     "#-",      "*",        "/*",     "*/",
      "--",    "\r",       "\n",       "{",    "}",    "${",   "$${",   "\\u0024", "\\",       "\"",     "<<E",
      "\nE\n", "#",        "//",       "@",    ".",    "x",    "\\200", "ü",       "sha256:ab"};
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (auto n = 1 + random() % 12; n > 0; --n) text += words[random() % words.size()] + (random() % 3 ? " " : "");
    for (const auto type : {ValueType::sql, ValueType::hcl, ValueType::txt, ValueType::image, ValueType::identifier}) {
      AttributeRule rule;
      rule.type = type;
      const auto once = normalise(rule, Value(text));
      ASSERT_EQ(once.has_value(), normalise(rule, Value(text)).has_value()) << text;
      ASSERT_TRUE(!once || parse(*once)) << text << "\n" << *once;
    }
    for (const auto* unit : {"image", "domain", "declared"}) {
      AttributeRule rule;
      rule.dialect = 2;
      rule.type = std::string_view(unit) == "declared" ? ValueType::version : ValueType::reference;
      rule.unit = unit;
      (void)equivalent(rule, Value(text), Value(text + "-x"));
    }
  }
}

TEST(Txt, EscapesAreBytes) {
  const std::string txt = R"("type":"txt")";
  expect_both_ways(
      txt,
      {{"\"\\321\"", "\"A\""}, {"\"\\200\"", "\"\\201\""}, {"\"\\200\"", "[\"bytes\",\"c8\"]"}, {"\"\\1x\"", "\"1x\""}},
      "drift");
  expect_both_ways(txt, {{"\"\\195\\188\"", "\"ü\""}, {"\"\\200\"", "\"\\200\" \"\""}}, "equal");
}

TEST(Image, ADigestIsAnAlgorithmAndHexadecimalDigits) {
  const std::string image = R"("type":"image")";
  expect_both_ways(image, {{"nginx:1@x", "nginx:2@x"}, {"nginx:1@", "nginx:2@"}, {"nginx:1@a:", "nginx:2@a:"}},
                   "drift");
  expect_both_ways(image, {{"nginx:1@sha256:ab", "nginx:2@sha256:ab"}}, "equal");
}

TEST(Identifier, APlainNameNeedsNoQuotes) {
  const std::string name = R"("type":"identifier")";
  expect_both_ways(name, {{"\"a.b\"", "a.b"}, {"\"A\"", "a"}, {"\"1\"", "1"}}, "drift");
  expect_both_ways(name, {{"\"a\"", "A"}, {"\"a\".\"b\"", "a.b"}, {"\"user\"", "user"}}, "equal");
}

}  // namespace
}  // namespace driftd::core
