// SPDX-License-Identifier: Apache-2.0
// Texts of strangers that are cut, and texts that are none.
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
  const std::string text = "a\u00e9\u20ac\U0001f512z";  // of 1, 2, 3, 4 and 1 bytes
  std::vector<std::size_t> lengths;
  for (std::size_t bytes = 0; bytes <= text.size() + 1; ++bytes) {
    EXPECT_TRUE(is_text(front(text, bytes))) << bytes;
    lengths.push_back(front(text, bytes).size());
  }
  EXPECT_THAT(lengths, testing::ElementsAre(0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11));
}

TEST(WellFormed, LeavesTextAsItIs) {
  for (const std::string text : {"", "plain", "\u00e9\u20ac\U0001f512", "\x01 and \x7f"}) EXPECT_EQ(well_formed(text), text);
}

TEST(WellFormed, MarksEachByteThatIsNone) {
  EXPECT_EQ(well_formed("a\xff" "b"), "a\ufffd" "b");
  EXPECT_EQ(well_formed("\xc3"), "\ufffd");
  EXPECT_EQ(well_formed("\xc3\xa9\xed\xa0\x80."), "\u00e9\ufffd\ufffd\ufffd.") << "a surrogate is no character";
  EXPECT_EQ(well_formed("\xc0\x80"), "\ufffd\ufffd") << "nor is a longer form of one";
}

TEST(WellFormed, IsTextWhateverItWas) {
  std::mt19937 random(7);
  for (int i = 0; i < 2'000; ++i) {
    std::string bytes(random() % 24, 0);
    for (char& c : bytes) c = static_cast<char>(random() % 4 == 0 ? random() : 0xc0 + random() % 0x38);
    const std::string out = well_formed(bytes);
    EXPECT_TRUE(is_text(out));
    EXPECT_EQ(out == bytes, is_text(bytes));
  }
}

}  // namespace
}  // namespace driftd
