// SPDX-License-Identifier: Apache-2.0
#include "core/value/value.hpp"

#include "core/value/parse_limits.hpp"

#include <gtest/gtest.h>
#include <random>

namespace driftd::core {
namespace {

std::string value_error(std::string_view json, Code code = Code::corrupt) {
  const auto value = parse(json);
  if (value) return "parsed: " + render(*value);
  EXPECT_EQ(value.error().code, code);
  return value.error().message;
}
std::string canonical(std::string_view json) {
  const auto value = parse(json);
  return value ? render(*value) : "error: " + value.error().message;
}

/// A random JSON value of at most `depth` levels.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}
  Value make(int depth) {
    switch (pick(depth > 0 ? 7 : 5)) {
      case 0:
        return Value();
      case 1:
        return Value(pick(2) == 0);
      case 2:
        return Value(Value::Number{number()});
      case 3:
      case 4:
        return Value(text());
      case 5:
        return Value(array(depth));
      default:
        return Value(object(depth));
    }
  }
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

 private:
  std::string number() {
    static const char* const kTokens[] = {"0", "-0", "1", "-17", "9223372036854775808", "1.50", "0.1", "1e400", "2E-3"};
    return kTokens[pick(9)];
  }
  std::string text() {
    static const char* const kPieces[] = {"a", "\"", "\\", "\n", "\x01", "ü", "\xF0\x9F\x98\x80", "/", " ", "z9"};
    std::string out;
    for (int n = pick(6); n > 0; --n) out += kPieces[pick(10)];
    return out;
  }
  Value::Array array(int depth) {
    Value::Array out;
    for (int n = pick(4); n > 0; --n) out.push_back(make(depth - 1));
    return out;
  }
  Value::Object object(int depth) {
    Value::Object out;
    for (int n = pick(4); n > 0; --n) out.insert_or_assign(text(), make(depth - 1));
    return out;
  }
  std::mt19937 random_;
};

TEST(Value, CanonicalTextSortsKeysByBytesAndDropsWhiteSpace) {
  EXPECT_EQ(canonical(" { \"b\" : [ 1 , true , null ] , \"a\" : { } , \"B\" : \"x\" } "),
            R"({"B":"x","a":{},"b":[1,true,null]})");
}

TEST(Value, NumbersKeepTheirTokens) {
  EXPECT_EQ(canonical("[9223372036854775808,1.0,1e0,-0,0.10000000000000000000000000001]"),
            "[9223372036854775808,1.0,1e0,-0,0.10000000000000000000000000001]");
}

TEST(Value, EscapesAreTheShortest) {
  EXPECT_EQ(canonical(R"(["\u0041\/\u000a\u0001\u00fc\ud83d\ude00\"\\"])"),
            "[\"A/\\n\\u0001ü\xF0\x9F\x98\x80\\\"\\\\\"]");
}

TEST(Value, AScalarIsADocument) {
  EXPECT_EQ(canonical(" 12 "), "12");
  EXPECT_EQ(canonical("\"x\""), "\"x\"");
  EXPECT_EQ(canonical("true"), "true");
  EXPECT_EQ(canonical("null"), "null");
}

TEST(Value, ADuplicateKeyIsAnErrorEvenWhenWrittenWithEscapes) {
  EXPECT_EQ(value_error("{\"a\":1,\n \"\\u0061\":2}"), "JSON 2:11: the key \"a\" occurs twice in one object");
}

TEST(Value, TextBehindTheDocumentIsAnError) {
  for (const auto* json : {"{} x", "[1] 2", "1 2", "\"a\" \"b\"", "true false", "null,", "{}{}", "[]]"}) {
    EXPECT_EQ(value_error(json).substr(0, 5), "JSON ") << json;
  }
  EXPECT_EQ(value_error("{}\n{}"), "JSON 2:1: text after the end of the document");
}

TEST(Value, BrokenDocumentsAreErrors) {
  for (const auto* json : {"",
                           "  ",
                           "{",
                           "[",
                           "[1",
                           "[1,",
                           "[1,]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "[1 2]",
                           "nul",
                           "truex",
                           "[tru]",
                           "01",
                           "[01]",
                           "+1",
                           "[.5]",
                           "[1.]",
                           "[1e]",
                           "[--1]",
                           "NaN",
                           "[Infinity]",
                           "\"a",
                           "[\"\\x\"]",
                           "[\"\\ud800\"]",
                           "[\"a\nb\"]",
                           "'a'",
                           "[1]]",
                           "{\"a\":1 \"b\":2}",
                           "// x\n1",
                           "[1;2]",
                           "[0x10]",
                           "\xEF\xBB\xBF{}"}) {
    EXPECT_EQ(value_error(json).substr(0, 5), "JSON ") << json;
  }
}

TEST(Value, InvalidUtf8IsReportedWhereItStands) {
  EXPECT_EQ(value_error("{\n\"a\": \"ü\xFFz\"}"), "JSON 2:9: not UTF-8");
  EXPECT_EQ(value_error("[\"\xED\xA0\x80\"]"), "JSON 1:3: not UTF-8");
}

TEST(Value, NestingOf256IsReadAndOneMoreIsNot) {
  const auto nested = [](int n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_TRUE(parse(nested(256)));
  EXPECT_NE(value_error(nested(257), Code::budget).find("nesting deeper than 256"), std::string::npos);
  EXPECT_NE(value_error(nested(100'000), Code::budget).find("nesting deeper than 256"), std::string::npos);
}

TEST(Value, ADocumentAboveTheLimitIsRefused) {
  EXPECT_NE(value_error(std::string((64u << 20) + 1, ' '), Code::budget).find("at most 67108864"), std::string::npos);
}

TEST(Value, ADocumentOfManyValuesIsRefusedAtTheOneThatIsTooMany) {
  EXPECT_TRUE(parse(R"({"a":[1,2]})", ParseLimits{.nodes = 4}));
  const auto refused = parse("{\"a\":\n[1,2]}", ParseLimits{.nodes = 3});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::budget);
  EXPECT_EQ(refused.error().message, "JSON 2:4: more than 3 values in one document");
}

TEST(Value, ManyValuesDeepDownAreRefused) {
  std::string ones = "1";
  for (int i = 0; i < 20'000; ++i) ones += ",1";
  const auto nested = [&](std::size_t levels) { return std::string(levels, '[') + ones + std::string(levels, ']'); };
  EXPECT_TRUE(parse(nested(90), kBodyLimits));
  const auto refused = parse(nested(250), kBodyLimits);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::budget);
}

TEST(Value, ALargeDocumentIsRead) {
  Value::Array array;
  for (int i = 0; i < 200'000; ++i) array.emplace_back("element " + std::to_string(i));
  const Value value(std::move(array));
  const auto again = parse(render(value));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, value);
}

TEST(Value, FindMissesOnWhatIsNoObject) {
  EXPECT_EQ(Value("x").find("a"), nullptr);
  EXPECT_EQ(Value(Value::Object{{"a", Value("b")}}).find("c"), nullptr);
}

TEST(ValueProperty, RenderAndParseGiveTheSameValue) {
  Generator generator(20261121);
  for (int i = 0; i < 3'000; ++i) {
    const Value value = generator.make(5);
    const auto again = parse(render(value));
    ASSERT_TRUE(again) << again.error().message << "\n" << render(value);
    ASSERT_EQ(*again, value) << render(value);
    ASSERT_EQ(render(*again), render(value));
  }
}

TEST(ValueProperty, ATruncatedOrFlippedDocumentNeverCrashesAndIsCanonicalWhenItParses) {
  Generator generator(7);
  for (int i = 0; i < 3'000; ++i) {
    std::string json = render(generator.make(4));
    json.resize(static_cast<std::size_t>(generator.pick(static_cast<int>(json.size()) + 1)));
    if (!json.empty())
      json[static_cast<std::size_t>(generator.pick(static_cast<int>(json.size())))] =
          static_cast<char>(generator.pick(256));
    const auto value = parse(json);
    if (!value) continue;
    ASSERT_EQ(canonical(render(*value)), render(*value)) << json;
  }
}

}  // namespace
}  // namespace driftd::core
