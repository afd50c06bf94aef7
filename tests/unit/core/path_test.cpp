// SPDX-License-Identifier: Apache-2.0
#include "core/value/path.hpp"

#include <gtest/gtest.h>

#include "core/value/value.hpp"

namespace driftd::core {
namespace {

Path path_of(std::string_view text) { return Path::parse(text).value(); }
Glob glob(std::string_view text) { return Glob::parse_path(text).value(); }
bool covers(std::string_view pattern, std::string_view text) { return glob(pattern).matches(path_of(text)); }
std::string path_error(std::string_view text) {
  const auto parsed = Path::parse(text);
  return parsed ? "parsed" : parsed.error().message;
}

TEST(Path, NormalFormsSurviveARoundTrip) {
  for (const auto* text : {"a", "a.b", "a.b[0].c", R"(config["min.insync.replicas"])", "rules[name=x].port", "a[0][1]",
                           R"(["a b"].c)", R"([""])", R"(a["q\"uo\\te"])", R"(l[name="a,]b",port=80].x)"}) {
    EXPECT_EQ(path_of(text).render(), text);
  }
}

TEST(Path, AQuotedPlainNameIsTheNameItself) { EXPECT_EQ(path_of(R"(a["b"])").render(), "a.b"); }

TEST(Path, ChildrenAreRenderedInNormalForm) {
  EXPECT_EQ(Path().child("config").child("a.b").child(3).render(), R"(config["a.b"][3])");
  EXPECT_EQ(Path().child("ports").selected("name=web").child("port").render(), "ports[name=web].port");
}

TEST(Path, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(path_error(""), "path '' at 1: expected a path, found nothing");
  EXPECT_EQ(path_error("a..b"),
            "path 'a..b' at 3: expected a name of letters, digits, '_', '-'; others are written [\"...\"]");
  EXPECT_EQ(path_error("a[0"), "path 'a[0' at 4: expected ']'");
  EXPECT_EQ(path_error("a[x]"), "path 'a[x]' at 2: expected an index, key=value or a quoted name between '[' and ']'");
  EXPECT_EQ(path_error("a[\"x]"), "path 'a[\"x]' at 3: a quote that is not closed");
  EXPECT_EQ(path_error("a b"), "path 'a b' at 2: expected '.' or '['");
}

TEST(Path, MalformedPathsAreRefused) {
  for (const auto* text : {".a", "a.", "a.*", "**", "a[", "a[]", "a[-1]", "a[01]", "a[9999999999]", "a[\"x\"", "a[=x]",
                           "a[\"\\x\"]", "a[\"b\\"}) {
    EXPECT_FALSE(Path::parse(text)) << text;
  }
}

TEST(Glob, AStarIsOneSegmentAndTwoAreAnyDepth) {
  EXPECT_TRUE(covers("config.*", "config.a"));
  EXPECT_TRUE(covers("config.*", R"(config["a.b"])"));
  EXPECT_FALSE(covers("config.*", "config"));
  EXPECT_FALSE(covers("config.*", "config.a.b"));
  EXPECT_TRUE(covers("**.updated_at", "updated_at"));
  EXPECT_TRUE(covers("**.updated_at", "a[3].b.updated_at"));
  EXPECT_FALSE(covers("**.updated_at", "a.updated_at.b"));
  EXPECT_TRUE(covers("a.**", "a"));
  EXPECT_TRUE(covers("a.**", "a.b[0]"));
  EXPECT_TRUE(covers("a.**.z", "a.z"));
  EXPECT_TRUE(covers("a.**.z", "a.b.c.z"));
  EXPECT_FALSE(covers("a", "a.b"));
}

TEST(Glob, AStarInsideANameIsAnyRun) {
  EXPECT_TRUE(covers("retention_*", "retention_ms"));
  EXPECT_FALSE(covers("retention_*", "x_retention_ms"));
  EXPECT_TRUE(covers(R"(config["log.*.ms"])", R"(config["log.retention.ms"])"));
  EXPECT_FALSE(covers(R"(config["log.*.ms"])", R"(config["log.retention.bytes"])"));
}

TEST(Glob, ElementsMatchByStarIndexOrKey) {
  EXPECT_TRUE(covers("ports[*].port", "ports[0].port"));
  EXPECT_TRUE(covers("ports.*.port", "ports[name=web].port"));
  EXPECT_TRUE(covers("ports[name=web].port", "ports[name=web].port"));
  EXPECT_FALSE(covers("ports[name=web].port", "ports[name=api].port"));
  EXPECT_TRUE(covers("ports[2]", "ports[2]"));
}

TEST(Glob, TheDottedShortFormCoversANameWithDots) {
  EXPECT_TRUE(covers("config.min.insync.replicas", R"(config["min.insync.replicas"])"));
  EXPECT_TRUE(covers("config.retention.*", R"(config["retention.ms"])"));
  EXPECT_FALSE(covers("config.min.insync.replica", R"(config["min.insync.replicas"])"));
  EXPECT_FALSE(covers("config.min.insync.replicas", R"(config["min.insync"])"));
}

TEST(Glob, NamesAreMatchedAsOneString) {
  EXPECT_TRUE(Glob::of_name("orders.*").matches("orders.eu.v1"));
  EXPECT_FALSE(Glob::of_name("orders.*").matches("orders"));
  EXPECT_TRUE(Glob::of_name("*").matches("anything/at all"));
  EXPECT_TRUE(Glob::of_name("a*b*c").matches("a--b--b-c"));
  EXPECT_FALSE(Glob::of_name("a*b*c").matches("a--c--b"));
}

TEST(Glob, ManyStarsEndInTime) {
  EXPECT_FALSE(Glob::of_name("*a*a*a*a*a*a*a*a*a*a*a*a*b").matches(std::string(5'000, 'a')));
}

TEST(Glob, MoreLiteralSegmentsAreMoreSpecific) {
  EXPECT_GT(glob("config.maxmemory").specificity(), glob("config.max*").specificity());
  EXPECT_GT(glob("config.max*").specificity(), glob("config.*").specificity());
  EXPECT_GT(glob("config.*").specificity(), glob("config.**").specificity());
  EXPECT_GT(glob("config.**").specificity(), glob("**").specificity());
  EXPECT_GT(glob("a.b.c").specificity(), glob("a.*.c").specificity());
}

TEST(Glob, MalformedPatternsAreRefused) {
  for (const auto* text : {"", "a.**b", "a.b***", "a b", "a[", "a.(b|c)"}) EXPECT_FALSE(Glob::parse_path(text)) << text;
}

class Body : public testing::Test {
 protected:
  Value body_ = parse(R"({"a":{"b":[{"name":"x","port":80},{"name":"y","port":81}]},"c.d":1})").value();
  std::string at(std::string_view text) const {
    const Value* value = find(body_, path_of(text));
    return value == nullptr ? "absent" : render(*value);
  }
  std::string set(std::string_view text, const Value& value) {
    const auto status = assign(body_, path_of(text), &value);
    return status ? render(body_) : status.error().message;
  }
  std::string remove(std::string_view text) {
    const auto status = assign(body_, path_of(text), nullptr);
    return status ? render(body_) : status.error().message;
  }
};

TEST_F(Body, FindsMembersIndexesAndKeyedElements) {
  EXPECT_EQ(at("a.b[1].port"), "81");
  EXPECT_EQ(at("a.b[name=x].port"), "80");
  EXPECT_EQ(at("a.b[name=x,port=80].name"), "\"x\"");
  EXPECT_EQ(at(R"(["c.d"])"), "1");
}

TEST_F(Body, MissesWhatIsNotThere) {
  for (const auto* text : {"x", "a.b[2]", "a.b[name=z]", "a.b.c", "a[0]", R"(["c.d"].e)"})
    EXPECT_EQ(at(text), "absent");
}

TEST_F(Body, AssignCreatesObjectsOnTheWay) {
  EXPECT_EQ(set("n.m.k", Value("v")),
            R"({"a":{"b":[{"name":"x","port":80},{"name":"y","port":81}]},"c.d":1,"n":{"m":{"k":"v"}}})");
}

TEST_F(Body, AssignReplacesAppendsAndRemovesElements) {
  set("a.b[name=y].port", Value(Value::Number{"82"}));
  EXPECT_EQ(at("a.b[1].port"), "82");
  set("a.b[2]", Value("new"));
  EXPECT_EQ(at("a.b[2]"), "\"new\"");
  remove("a.b[name=x]");
  EXPECT_EQ(at("a.b[0].name"), "\"y\"");
  remove(R"(["c.d"])");
  EXPECT_EQ(at(R"(["c.d"])"), "absent");
}

TEST_F(Body, AssignByKeyAddsAnElementThatAnswersToIt) {
  set("a.b[name=z].port", Value(Value::Number{"90"}));
  EXPECT_EQ(at("a.b[name=z]"), R"({"name":"z","port":90})");
}

TEST_F(Body, AssignRefusesToWalkThroughAScalarOrBehindAList) {
  EXPECT_EQ(set(R"(["c.d"].e)", Value("v")), "cannot set '[\"c.d\"].e': a parent of this path is not an object");
  EXPECT_EQ(set("a.b[7]", Value("v")), "cannot set 'a.b[7]': the index is behind the end of the list");
}

TEST_F(Body, RemovingWhatIsNotThereChangesNothing) {
  const auto before = render(body_);
  EXPECT_EQ(remove("x.y.z"), before);
  EXPECT_EQ(remove("a.b[9].port"), before);
}

}  // namespace
}  // namespace driftd::core
