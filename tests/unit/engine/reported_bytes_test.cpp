// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/reported_bytes.hpp"

#include <gmock/gmock.h>

namespace driftd::test {
namespace {

using SaidBytes = engine::ReportedBytes;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kMebibyte = 1u << 20;
const core::Registrar kProd{"cluster", "prod"}, kTest{"cluster", "test"}, kState{"state", ""};

TEST(SaidBytes, OfANamespaceHaveRoomUpToTheBoundAndNoNamespaceTakesAnothers) {
  SaidBytes bytes;
  EXPECT_THAT(bytes.try_add("a", kProd, 8 * kMebibyte), IsEmpty());
  EXPECT_THAT(bytes.try_add("b", kProd, 1), HasSubstr("8 MiB of one namespace"));
  EXPECT_THAT(bytes.try_add("c", kTest, 8 * kMebibyte), IsEmpty());
}

TEST(SaidBytes, OfASourceHaveRoomUpToTheBoundAndNoSourceTakesAnothers) {
  SaidBytes bytes;
  EXPECT_THAT(bytes.try_add("a", kState, 64 * kMebibyte), IsEmpty());
  EXPECT_THAT(bytes.try_add("b", kState, 1), HasSubstr("64 MiB of one source"));
  EXPECT_THAT(bytes.try_add("c", kProd, 1), IsEmpty());
}

TEST(SaidBytes, OfANewWordTakeThePlaceOfTheLastOne) {
  SaidBytes bytes;
  for (int i = 0; i < 3; ++i) EXPECT_THAT(bytes.try_add("a", kProd, 8 * kMebibyte), IsEmpty());
  EXPECT_THAT(bytes.try_add("a", kProd, 9 * kMebibyte), HasSubstr("8 MiB"));
  EXPECT_THAT(bytes.try_add("b", kProd, 1), HasSubstr("8 MiB")) << "the word before stands";
  EXPECT_THAT(bytes.try_add("a", kTest, 8 * kMebibyte), IsEmpty()) << "it is said elsewhere now";
  EXPECT_THAT(bytes.try_add("b", kProd, 8 * kMebibyte), IsEmpty());
}

TEST(SaidBytes, OfWhatIsNotSaidAnyMoreTakeNoRoom) {
  SaidBytes bytes;
  EXPECT_THAT(bytes.try_add("a", kProd, 8 * kMebibyte), IsEmpty());
  bytes.forget("a");
  bytes.forget("never heard of");
  EXPECT_THAT(bytes.try_add("b", kProd, 8 * kMebibyte), IsEmpty());
}

}  // namespace
}  // namespace driftd::test
