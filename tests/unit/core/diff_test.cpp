// SPDX-License-Identifier: Apache-2.0
// What the golden cases do not cover: traces, classes, whole subtrees, properties over generated bodies.
#include "core/judge/diff.hpp"

#include <gtest/gtest.h>
#include <random>

#include "core/drift.hpp"
#include "core/judge/normal_forms.hpp"
#include "core/value/schema.hpp"

namespace driftd::core {
namespace {

Value json(std::string_view text) { return parse(text).value(); }
std::shared_ptr<const KindSchema> schema(const std::string& attributes) {
  return KindSchema::parse(R"({"schema":"driftd-schema/1","kind":"thing","attributes":{)" + attributes + "}}").value();
}
std::string seen(const Difference& difference) {
  std::string out;
  for (const auto& change : difference.changes) {
    out += std::string(render(change.cls)) + " " + change.path + ": " + change.old_value.value_or("-") + " > " +
           change.new_value.value_or("-") + (change.redacted ? " redacted" : "") + "\n";
  }
  for (const auto& unknown : difference.unknown) out += "unknown " + unknown.path + ": " + unknown.reason + "\n";
  for (const auto& [path, value, same] : difference.filled) out += "filled " + path + "\n";
  return out;
}
std::string compare(const std::string& attributes, std::string_view before, std::string_view after,
                    const DiffOptions& options = {}) {
  return seen(diff(json(before), json(after), *schema(attributes), options));
}

TEST(Diff, ASubtreeThatComesIsOneChangeAtItsRoot) {
  EXPECT_EQ(compare("", "{}", R"({"a":{"b":1,"c":{"d":2}}})"), "config a: - > {\"b\":1,\"c\":{\"d\":2}}\n");
}

TEST(Diff, ASubtreeOfSeveralClassesIsToldApart) {
  EXPECT_EQ(compare(R"("a.p":{"class":"credential"})", "{}", R"({"a":{"b":1,"p":2}})"),
            "config a.b: - > 1\ncredential a.p: - > 2\n");
}

TEST(Diff, AVolatilePartNeverMovesASubtree) {
  EXPECT_EQ(compare(R"("a.t":{"volatile":true})", "{}", R"({"a":{"b":1,"t":2}})"), "config a.b: - > 1\n");
  EXPECT_EQ(compare(R"("a.t":{"volatile":true})", "{}", R"({"a":{"t":2}})"), "");
}

/// Each level was rendered twice, once to see whether it is the default: 2^60 times at its end.
TEST(Diff, ADefaultForEachLevelCostsWhatTheDepthIs) {
  const auto nested = [](const std::string& end) {
    std::string open, close;
    for (int i = 0; i < 60; ++i) open += R"({"a":)", close += "}";
    return R"({"l":[)" + open + end + close + "]}";
  };
  EXPECT_EQ(compare(R"("**":{"default":0})", nested("1"), nested("1.0")), "");
  EXPECT_NE(compare(R"("**":{"default":0})", nested("1"), nested("2")), "");
}

std::string members(int count, const std::string& value) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (out.empty() ? "\"m" : ",\"m") + std::to_string(i) + "\":" + value;
  return "{" + out + "}";
}

/// A default of 50,000 elements under a rule for many members was rendered once for each of them.
TEST(Forms, ADefaultIsRenderedOnceForAllMembersOfItsRule) {
  for (const std::string rules :
       {R"("a.*":{"default":[1,2,3]})", R"("a.*":{"type":"json","default":[1,2,3]})", R"("**":{"default":[1,2,3]})",
        R"("a.*":{"default":[1,2,3]},"**.b":{"volatile":true})"}) {
    const auto thing = schema(rules);
    const Forms forms(*thing);
    const Value value = json(members(1'000, "[1,2]"));
    EXPECT_EQ(forms.of(Path::parse("a").value(), value), render(value)) << rules;
    EXPECT_EQ(forms.rendered_schema_values(), 1u) << rules;
  }
}

TEST(Forms, EmptyEquivalentsAreRenderedOnceForAllMembersOfTheirRule) {
  const auto thing = schema(R"("a.*":{"empty":[0,"","none"]})");
  const Forms forms(*thing);
  EXPECT_EQ(forms.of(Path::parse("a").value(), json(members(1'000, "\"none\""))), "{}");
  EXPECT_EQ(forms.rendered_schema_values(), 3u);
}

/// A rule of one element makes the default's form another one at that path, so it is not shared with the other members.
TEST(Forms, ADefaultHasTheFormThatTheRulesGiveItsElementsAtEachPath) {
  const std::string folded = R"({"type":"string","fold":"ascii"})";
  const auto one = schema(R"("a.*":{"default":["X"]},"a.one[0]":)" + folded),
             all = schema(R"("a.*":{"default":["X"]},"**":)" + folded);
  const Path a = Path::parse("a").value();
  const Value small = json(R"({"one":["x"],"two":["x"]})"), large = json(R"({"one":["X"],"two":["X"]})");
  EXPECT_EQ(Forms(*one).of(a, small), R"({"two":["x"]})");
  EXPECT_EQ(Forms(*one).of(a, large), "{}");
  EXPECT_EQ(Forms(*all).of(a, small), "{}");
}

TEST(Diff, ADigestInAChangeIsMarkedRedacted) {
  const std::string one = R"({"$hmac":"aa:1:)" + std::string(64, '1') + "\"}",
                    two = R"({"$hmac":"aa:1:)" + std::string(64, '2') + "\"}";
  EXPECT_EQ(compare(R"("p":{"class":"credential"})", "{\"p\":" + one + "}", "{\"p\":" + two + "}"),
            "credential p: " + one + " > " + two + " redacted\n");
}

TEST(Diff, UnreadParentsCoverTheirChildrenAndNameTheReason) {
  DiffOptions options;
  options.unread.push_back({"a.**", Code::denied, "needs pg_monitor"});
  EXPECT_EQ(compare("", R"({"a":{"b":1},"c":1})", R"({"c":1})", options), "unknown a: needs pg_monitor\n");
}

TEST(Diff, AnUnreadPartOfAKeyedElementConcernsThatElementOnly) {
  DiffOptions options;
  options.unread.push_back({"l[0].x", Code::denied, "denied"});
  EXPECT_EQ(compare(R"("l":{"collection":"map","keys":["n"]})", R"({"l":[{"n":"a","x":1},{"n":"b","x":1}]})",
                    R"({"l":[{"n":"a"},{"n":"b","x":2}]})", options),
            "config l[n=b].x: 1 > 2\nunknown l[n=a]: part of it is unreadable: denied\n");
}

TEST(Diff, KeysThatAreNotUniqueCompareTheListWhole) {
  EXPECT_EQ(compare(R"("l":{"collection":"map","keys":["n"]})", R"({"l":[{"n":1},{"n":1}]})", R"({"l":[{"n":1}]})"),
            "config l: [{\"n\":1},{\"n\":1}] > [{\"n\":1}]\n");
}

TEST(Diff, ValuesOnAnotherBasisAreTakenAnewAndTheTraceSaysSo) {
  const std::string rules = R"("d":{"basis":"v"},"v":{"type":"version","unit":"major","basis":"v"})";
  EXPECT_EQ(compare(rules, R"({"d":"x","v":"12.1"})", R"({"d":"y","v":"17"})"), "filled d\nfilled v\n");
  EXPECT_EQ(compare(rules, R"({"d":"x","v":"12.1"})", R"({"d":"y","v":"12.9"})"), "config d: \"x\" > \"y\"\n")
      << "the same by its own type";
  EXPECT_EQ(compare(rules, R"({"d":"x","v":"12"})", R"({"v":"17"})"), "config d: \"x\" > -\nfilled v\n")
      << "nothing is there to take";
  EXPECT_EQ(compare(rules, R"({"v":"12"})", R"({"d":"y","v":"17"})"), "config d: - > \"y\"\nfilled v\n");
  EXPECT_EQ(compare(rules, R"({"d":"x"})", R"({"d":"y","v":"17"})"), "config d: \"x\" > \"y\"\nconfig v: - > \"17\"\n");
  std::vector<Step> trace;
  DiffOptions options;
  options.trace = &trace;
  compare(rules, R"({"d":"x","v":"12"})", R"({"d":"y","v":"17"})", options);
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0].reason, "cannot be compared: another v");
}

TEST(Diff, TheTraceSaysHowEachAttributeWasJudged) {
  std::vector<Step> trace;
  DiffOptions options;
  options.trace = &trace;
  compare(R"("t":{"type":"duration","unit":"postgres:ms"})", R"({"t":"1min","u":1})", R"({"t":60000,"u":2})", options);
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0].path + " " + trace[0].verdict + " " + trace[0].rule, "t equal duration(postgres:ms) of \"t\"");
  EXPECT_EQ(trace[0].old_raw + " " + trace[0].new_raw + " " + trace[0].old_norm + " " + trace[0].new_norm,
            "\"1min\" 60000 60000000000 60000000000");
  EXPECT_EQ(trace[1].verdict, "drift");
}

TEST(Diff, TheTraceShowsNoDigest) {
  std::vector<Step> trace;
  DiffOptions options;
  options.trace = &trace;
  compare("", R"({})", R"({"p":{"$hmac":"aa:1:)" + std::string(64, '1') + "\"}}", options);
  ASSERT_EQ(trace.size(), 1u);
  EXPECT_EQ(trace[0].new_raw + trace[0].new_norm, "\"[REDACTED]\"\"[REDACTED]\"");
}

Value body(std::mt19937& random, int depth) {
  Value::Object out;
  for (int i = 0; i < 4; ++i) {
    const std::string name(1, static_cast<char>('a' + random() % 5));
    switch (random() % (depth > 0 ? 6 : 4)) {
      case 0:
        out.insert_or_assign(name, Value(Value::Number{std::to_string(random() % 3)}));
        break;
      case 1:
        out.insert_or_assign(name, Value(random() % 2 ? "x" : "Y"));
        break;
      case 2:
        out.insert_or_assign(name, Value());
        break;
      case 3:
        out.insert_or_assign(name, Value(Value::Array{Value("x"), Value(Value::Number{"1"})}));
        break;
      default:
        out.insert_or_assign(name, body(random, depth - 1));
    }
  }
  return Value(std::move(out));
}

TEST(DiffProperty, ABodyNeverDiffersFromItself) {
  const auto rules = schema(
      R"("a":{"type":"int","default":1},"b":{"collection":"set"},"**.c":{"type":"string","fold":"ascii"},"d":{"empty":[null]})");
  std::mt19937 random(3);
  for (int i = 0; i < 3'000; ++i) {
    const Value one = body(random, 3);
    ASSERT_EQ(seen(diff(one, one, *rules, {})), "") << render(one);
  }
}

TEST(DiffProperty, SwappingTheBodiesSwapsTheValues) {
  const auto rules = schema(R"("b":{"collection":"set"},"**.c":{"type":"string","fold":"ascii"},"d":{"empty":[null]})");
  std::mt19937 random(4);
  for (int i = 0; i < 3'000; ++i) {
    const Value one = body(random, 3), two = body(random, 3);
    auto there = diff(one, two, *rules, {}).changes;
    for (auto& change : there) std::swap(change.old_value, change.new_value);
    ASSERT_EQ(there, diff(two, one, *rules, {}).changes) << render(one) << "\n" << render(two);
  }
}

}  // namespace
}  // namespace driftd::core
