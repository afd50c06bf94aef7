// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/digest.hpp"
#include "base/rate_limiter.hpp"
#include "ipc/messages.hpp"
#include "ipc/text.hpp"
#include "ipc/wire.hpp"

namespace driftd::ipc {
namespace {

/// CRC-32C bit by bit, as in RFC 3720.
std::uint32_t slow_crc(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

TEST(Limits, TheChecksumIsThatOfItsRfcAtEveryLengthAndInParts) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text.push_back(static_cast<char>(i * 37));
    ASSERT_EQ(crc32c(text), slow_crc(text)) << i;
    const std::string_view all = text;
    ASSERT_EQ(crc32c(all.substr(i / 2), crc32c(all.substr(0, i / 2))), crc32c(all)) << i;
  }
}

TEST(Limits, ANumberThatIsNoneOfItsEnumIsNotDecoded) {
  EXPECT_TRUE(decode<PermitAnswer>(encode(PermitAnswer{1, Code::internal})));
  EXPECT_FALSE(decode<PermitAnswer>(encode(PermitAnswer{1, static_cast<Code>(15)})));
  EXPECT_FALSE(decode<PermitAnswer>(encode(PermitAnswer{1, static_cast<Code>(-1)})));
}

TEST(Limits, AListLongerThanAllowedIsNotDecoded) {
  const std::string payload = encode(std::vector<std::uint32_t>(9));
  std::vector<std::uint32_t> out;
  Decoder strict(payload, 8);
  strict(out);
  EXPECT_FALSE(strict.ok());
  Decoder enough(payload, 9);
  enough(out);
  EXPECT_TRUE(enough.whole());
}

TEST(Limits, AFrameThatIsSmallByItsTypeIsRefusedBeforeItsBytesArrive) {
  const std::string large = render(Frame{FrameType::log, 1, std::string(kMaxSmall + 1, 'x')});
  FrameReader reader;
  reader.feed(std::string_view(large).substr(0, kHeaderSize));
  EXPECT_EQ(reader.next().error().code, Code::corrupt);
}

TEST(Limits, ControlCharactersLeaveNoSecondLine) {
  EXPECT_EQ(one_line("a\nb\r\x1b[2J\x7f\xff", 100), "a?b??[2J??");
  EXPECT_EQ(one_line("\xc2\x9b"
                     "2J \xe2\x80\xae \xe2\x81\xa9 caf\xc3\xa9",
                     100),
            "?2J ? ? caf\xc3\xa9");
}

TEST(Limits, ARateGivesItsBurstThenOneTokenEach) {
  RateLimiter rate(std::chrono::milliseconds(10), 3);
  const auto now = RateLimiter::Clock::now();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(rate.try_take(now));
  EXPECT_FALSE(rate.try_take(now));
  EXPECT_FALSE(rate.full(now));
  EXPECT_TRUE(rate.try_take(now + std::chrono::milliseconds(10)));
  EXPECT_TRUE(rate.full(now + std::chrono::milliseconds(60)));
}

}  // namespace
}  // namespace driftd::ipc
