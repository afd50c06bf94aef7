// SPDX-License-Identifier: Apache-2.0
// What every provider does with texts that others chose: bytes, nesting, length, URLs.
#include <gtest/gtest.h>
#include <chrono>
#include <set>

#include "common/bounded_json.hpp"
#include "common/plain_transport.hpp"
#include "common/short_text.hpp"
#include "common/shown_url.hpp"
#include "common/utf8_text.hpp"
#include "support/patience.hpp"

namespace driftd::common {
namespace {

using nlohmann::json;

TEST(ShortText, NoPartOfAWordIsLeftAtTheCut) {
  EXPECT_EQ(short_text("as it is", 8), "as it is");
  for (std::size_t most = 9; most < 24; ++most)
    EXPECT_EQ(short_text("refused: canary-of-a-secret, try again", most), "refused:…") << most;
  EXPECT_EQ(short_text(std::string(5000, 'x'), 300), "…");
}

TEST(Utf8Text, EveryTextThatIsUtf8StaysAndEveryOtherByteIsShown) {
  for (const std::string good :
       {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "a\0b", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(utf8_text(good), good);
  }
  EXPECT_EQ(utf8_text("a\xff"
                      "b"),
            "a\\xffb");
  EXPECT_EQ(utf8_text("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(utf8_text("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(utf8_text("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond U+10FFFF";
  EXPECT_EQ(utf8_text("\xe2\x82"), "\\xe2\\x82") << "cut";
}

/// Any two bytes become UTF-8, without which dump() would throw, and two different texts stay different.
TEST(Utf8Text, WhateverTheBytesTheResultIsUtf8) {
  std::set<std::string> seen;
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string out = utf8_text(std::string{static_cast<char>(a), static_cast<char>(b)});
      EXPECT_NO_THROW((void)json(out).dump());
      EXPECT_TRUE(seen.insert(out).second) << a << " " << b;
    }
  }
}

/// The library that writes the JSON is the judge: dump() throws for what is not UTF-8.
TEST(Utf8Text, WhatTheJsonLibraryTakesIsUtf8) {
  const std::string firsts = "a\x80\xc1\xc2\xdf\xe0\xe2\xed\xef\xf0\xf3\xf4\xf5\xff",
                    others = "a\x80\x8f\x90\x9f\xa0\xbf\xc0";
  const auto dumps = [](const std::string& text) {
    try {
      return !json(text).dump().empty();
    } catch (const json::exception&) {
      return false;
    }
  };
  for (const char a : firsts) {
    for (const char b : others) {
      for (const char c : others) {
        for (const std::string& text :
             {std::string{a}, std::string{a, b}, std::string{a, b, c}, std::string{a, b, c, '\x80'}})
          EXPECT_EQ(is_utf8(text), dumps(text)) << json(utf8_text(text)).dump();
      }
    }
  }
}

TEST(Utf8Text, ABeginningEndsBetweenCharacters) {
  EXPECT_EQ(utf8_prefix("abc", 3), "abc");
  EXPECT_EQ(utf8_prefix("abc", 2), "ab");
  EXPECT_EQ(utf8_prefix("a\xe2\x82\xac", 4), "a\xe2\x82\xac");
  for (const std::size_t inside : {1u, 2u, 3u}) EXPECT_EQ(utf8_prefix("a\xe2\x82\xac", inside), "a") << inside;
  EXPECT_EQ(utf8_prefix("\xe2\x82\xac", 2), "");
}

/// A text that looks like an escaped byte, and that byte, also stay different, however often they are escaped.
TEST(Utf8Text, WhatImitatesAByteIsAnotherText) {
  std::set<std::string> seen;
  const std::string parts[] = {"", "\xff", "\\", "\\xff", "\\x5c", "x5c", "xff", "a"};
  std::set<std::string> texts;
  for (const auto& a : parts) {
    for (const auto& b : parts) {
      for (const auto& c : parts) texts.insert(a + b + c);
    }
  }
  for (const auto& text : texts) EXPECT_TRUE(seen.insert(utf8_text(text)).second) << utf8_text(text);
  EXPECT_EQ(utf8_text("C:\\xaminer\\xFF \\xf"), "C:\\xaminer\\xFF \\xf") << "only what a byte is shown as";
}

std::string nested(int depth, const std::string& open = "[", const std::string& close = "]") {
  std::string out;
  for (int i = 0; i < depth; ++i) out += open;
  for (int i = 0; i < depth; ++i) out += close;
  return out;
}

TEST(BoundedJson, NestingIsCountedOutsideOfTextsOnly) {
  EXPECT_EQ(shape_of(R"({"a":["[[[","\"[["]})").deepest, 2);
  EXPECT_EQ(shape_of(nested(7)).deepest, 7);
  EXPECT_EQ(shape_of("\"\\").deepest, 0);
}

TEST(BoundedJson, WhatIsAllowedIsParsedWholeAndWhatIsDeeperIsLeftOut) {
  const auto whole = parse_bounded(nested(kMaxNesting));
  EXPECT_FALSE(whole.cut);
  EXPECT_EQ(whole.value.dump(), nested(kMaxNesting));
  for (const int depth : {kMaxNesting + 1, 300, 400'000, 4'000'000}) {
    const auto cut =
        parse_bounded(R"({"name":"x","deep":)" + nested(depth) + R"(,"also":)" + nested(depth, "{\"k\":[", "]}") + "}");
    ASSERT_TRUE(cut.cut);
    ASSERT_TRUE(cut.value.is_object());
    EXPECT_EQ(cut.value["name"], "x");
    EXPECT_LE(shape_of(cut.value.dump()).deepest, kMaxNesting);
  }
  EXPECT_TRUE(parse_bounded(nested(400'000) + "]").value.is_discarded());
}

TEST(BoundedJson, ValuesAreCountedOutsideOfTextsAndTooManyAreNoTree) {
  EXPECT_EQ(shape_of(R"({"a":["[,{","\",\"",1,{}]})").values, 7u) << "six, and never less than there are";
  std::string list = "[0";
  for (std::size_t i = 2; i < kMaxParsed; ++i) list += ",0";
  const auto most = parse_bounded(list + "]");
  EXPECT_FALSE(most.cut);
  EXPECT_EQ(most.value.size(), kMaxParsed - 1);
  const auto more = parse_bounded(list + ",0]");
  EXPECT_TRUE(more.cut);
  EXPECT_TRUE(more.value.is_discarded());
  EXPECT_EQ(more.why, "it holds more than 270000 values");
}

/// nlohmann's own callback searches all of a list after each object in it.
TEST(BoundedJson, AWideListBesideADeepOneTakesNoLongerThanItsText) {
  std::string list = "[{}";
  for (std::size_t i = 1; i < kMaxValues; ++i) list += ",{}";
  const auto begin = std::chrono::steady_clock::now();
  const auto cut = parse_bounded(R"({"deep":)" + nested(kMaxNesting) + R"(,"wide":)" + list + "]}");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2) * test::kPatience);
  EXPECT_TRUE(cut.cut);
  EXPECT_EQ(cut.value["wide"].size(), kMaxValues);
}

TEST(BoundedJson, TheMemberOfTooManyValuesGoesHoweverShortItIs) {
  json body = {{"superuser", true}, {"words", std::string(1u << 20, 'x')}, {"keys", json::array()}, {"few", {1, 2, 3}}};
  for (std::size_t i = 0; i < kMaxValues; ++i) body["keys"].push_back(0);
  std::vector<std::string> left_out;
  const std::string text = fit_members(body, kMaxBody, left_out);
  EXPECT_EQ(left_out, std::vector<std::string>{"keys"});
  EXPECT_EQ(json::parse(text)["few"], json({1, 2, 3}));
  EXPECT_LE(values_in(body), kMaxValues);
}

TEST(BoundedJson, OnlyTheLongestMembersGoUntilABodyFits) {
  json body = {
      {"superuser", true}, {"settings", std::string(5000, 'x')}, {"more", std::string(3000, 'y')}, {"few", "z"}};
  std::vector<std::string> left_out;
  const std::string text = fit_members(body, 4000, left_out);
  EXPECT_LE(text.size(), 4000u);
  EXPECT_EQ(left_out, std::vector<std::string>{"settings"});
  EXPECT_EQ(json::parse(text)["superuser"], true);
}

TEST(BoundedJson, TooManySecretPathsBecomeTheMembersThatHoldThem) {
  std::vector<std::string> few = {"data[\"a\"]", "data.b"}, many;
  bound_paths(few);
  EXPECT_EQ(few.size(), 2u);
  for (int i = 0; i < 5000; ++i)
    many.push_back((i % 2 == 0 ? "data[\"" : "[\"x].\\\"y\"][\"") + std::to_string(i) + "\"]");
  bound_paths(many);
  EXPECT_EQ(many, (std::vector<std::string>{"[\"x].\\\"y\"]", "data"}));
}

/// If a name is longer than a path may be, the member that holds it is secret as a whole; if that name is too long as
/// well, the whole body is.
TEST(BoundedJson, ASecretUnderANameThatNoPathHoldsIsOneOfWhatHoldsIt) {
  const std::string name(5000, 'k');
  std::vector<std::string> paths = {"data[\"a\"]", "config[\"" + name + "\"]"},
                           whole = {"[\"" + name + "\"]", "data.b"}, many;
  bound_paths(paths);
  EXPECT_EQ(paths, (std::vector<std::string>{"config", "data[\"a\"]"}));
  bound_paths(whole);
  EXPECT_EQ(whole, (std::vector<std::string>{"**", "data.b"}));
  for (int i = 0; i < 5000; ++i) many.push_back("m" + std::to_string(i) + ".password");
  bound_paths(many);
  EXPECT_EQ(many, std::vector<std::string>{"**"});
}

TEST(ShownUrl, UserPasswordQueryAndFragmentAreNeverShown) {
  for (const std::string secret : {"hunter2", "p/w", "p?w", "p#w", "p@w", "p:w", "1:2@3", "99"}) {
    for (const std::string& url :
         {"https://me:" + secret + "@host.example/state/x", "https://me:" + secret + "@host.example:8443/a",
          "https://host.example/state?token=" + secret, "https://host.example/state#" + secret,
          "redis://:" + secret + "@host.example", "me:" + secret + "@host.example"}) {
      const std::string shown = shown_url(url);
      EXPECT_EQ(shown.find(secret), std::string::npos) << url << " → " << shown;
      EXPECT_NE(shown.find("host.example"), std::string::npos) << url << " → " << shown;
    }
  }
}

TEST(ShownUrl, WhatHoldsNoSecretStaysAsItIs) {
  for (const std::string url :
       {"https://host/a/@scope/b", "http://[::1]:8500/v1/kv/x", "https://host:8443", "unix:/run/x.sock"}) {
    EXPECT_EQ(shown_url(url), url);
  }
}

TEST(PlainTransport, OnlyThisMachineNeedsNoTls) {
  for (const std::string here : {"localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]", "/run/postgresql", ""})
    EXPECT_TRUE(is_local_host(here)) << here;
  for (const std::string there : {"db", "10.0.0.1", "localhost.example", "[fd00::1]"})
    EXPECT_FALSE(is_local_host(there)) << there;
  EXPECT_EQ(plain_http_host("http://db:8500/x"), "db");
  EXPECT_EQ(plain_http_host("http://u:p@[::1]:8500/x"), "[::1]");
  EXPECT_EQ(plain_http_host("https://db/x"), "");
}

}  // namespace
}  // namespace driftd::common
