// SPDX-License-Identifier: Apache-2.0
// Untrusted texts that are cut, and bytes that are not text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "base/escape.hpp"

namespace driftd {
namespace {

bool is_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t n = utf8_sequence(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

TEST(Front, IsNotCutInsideOfACharacter) {
  const std::string text = "a\u00e9\u20ac\U0001f512z";  // characters of 1, 2, 3, 4 and 1 bytes
  std::vector<std::size_t> lengths;
  for (std::size_t bytes = 0; bytes <= text.size() + 1; ++bytes) {
    EXPECT_TRUE(is_text(front(text, bytes))) << bytes;
    lengths.push_back(front(text, bytes).size());
  }
  EXPECT_THAT(lengths, testing::ElementsAre(0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11));
}

TEST(AroundDifference, LeavesShortOnesWhole) {
  EXPECT_EQ(around_difference("abc", "abd", 3), (std::pair<std::string, std::string>("abc", "abd")));
  EXPECT_EQ(around_difference("", "", 3), (std::pair<std::string, std::string>("", "")));
}

TEST(AroundDifference, ShowsWhereTwoTextsPartAndIsText) {
  for (std::size_t before = 0; before < 300; before += 7) {
    for (const std::string one : {"x", "\u00e9", "\U0001f512"}) {
      std::string same;
      for (std::size_t i = 0; i < before; ++i) same += one;
      for (const std::string& tail : {std::string(), same}) {
        // both characters begin with the same byte
        const auto [a, b] = around_difference(same + "\u00e9" + tail, same + "\u00e8" + tail, 60);
        EXPECT_TRUE(is_text(a) && is_text(b));
        EXPECT_THAT(a, testing::HasSubstr("\u00e9"));
        EXPECT_THAT(b, testing::HasSubstr("\u00e8"));
        EXPECT_NE(a, b);
        EXPECT_LE(std::max(a.size(), b.size()), 66u);
      }
    }
  }
}

TEST(AroundDifference, ShowsWhatOneHasMore) {
  const std::string same(500, 'x');
  const auto [a, b] = around_difference(same, same + "; and more", 60);
  EXPECT_THAT(b, testing::EndsWith("x; and more"));
  EXPECT_THAT(a, testing::EndsWith("x"));
}

TEST(WellFormed, LeavesTextAsItIs) {
  for (const std::string text : {"", "plain", "\u00e9\u20ac\U0001f512", "\x01 and \x7f"})
    EXPECT_EQ(valid_utf8(text), text);
}

TEST(WellFormed, MarksEachByteThatIsNone) {
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\ufffd"
            "b");
  EXPECT_EQ(valid_utf8("\xc3"), "\ufffd");
  EXPECT_EQ(valid_utf8("\xc3\xa9\xed\xa0\x80."), "\u00e9\ufffd\ufffd\ufffd.") << "a surrogate is no character";
  EXPECT_EQ(valid_utf8("\xc0\x80"), "\ufffd\ufffd") << "nor is a longer form of one";
}

TEST(WellFormed, IsTextWhateverItWas) {
  std::mt19937 random(7);
  for (int i = 0; i < 2'000; ++i) {
    std::string bytes(random() % 24, 0);
    for (char& c : bytes) c = static_cast<char>(random() % 4 == 0 ? random() : 0xc0 + random() % 0x38);
    const std::string out = valid_utf8(bytes);
    EXPECT_TRUE(is_text(out));
    EXPECT_EQ(out == bytes, is_text(bytes));
  }
}

}  // namespace
}  // namespace driftd
