// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/reported_bytes.hpp"

#include <gmock/gmock.h>

namespace driftd::test {
namespace {

using engine::SaidBytes;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kMegabyte = 1u << 20;
const core::Speaker kProd{"cluster", "prod"}, kTest{"cluster", "test"}, kState{"state", ""};

TEST(SaidBytes, OfANamespaceHaveRoomUpToTheBoundAndNoNamespaceTakesAnothers) {
  SaidBytes said;
  EXPECT_THAT(said.take("a", kProd, 8 * kMegabyte), IsEmpty());
  EXPECT_THAT(said.take("b", kProd, 1), HasSubstr("8 MiB of one namespace"));
  EXPECT_THAT(said.take("c", kTest, 8 * kMegabyte), IsEmpty());
}

TEST(SaidBytes, OfASourceHaveRoomUpToTheBoundAndNoSourceTakesAnothers) {
  SaidBytes said;
  EXPECT_THAT(said.take("a", kState, 64 * kMegabyte), IsEmpty());
  EXPECT_THAT(said.take("b", kState, 1), HasSubstr("64 MiB of one source"));
  EXPECT_THAT(said.take("c", kProd, 1), IsEmpty());
}

TEST(SaidBytes, OfANewWordTakeThePlaceOfTheLastOne) {
  SaidBytes said;
  for (int i = 0; i < 3; ++i) EXPECT_THAT(said.take("a", kProd, 8 * kMegabyte), IsEmpty());
  EXPECT_THAT(said.take("a", kProd, 9 * kMegabyte), HasSubstr("8 MiB"));
  EXPECT_THAT(said.take("b", kProd, 1), HasSubstr("8 MiB")) << "the word before stands";
  EXPECT_THAT(said.take("a", kTest, 8 * kMegabyte), IsEmpty()) << "it is said elsewhere now";
  EXPECT_THAT(said.take("b", kProd, 8 * kMegabyte), IsEmpty());
}

TEST(SaidBytes, OfWhatIsNotSaidAnyMoreTakeNoRoom) {
  SaidBytes said;
  EXPECT_THAT(said.take("a", kProd, 8 * kMegabyte), IsEmpty());
  said.forget("a");
  said.forget("never heard of");
  EXPECT_THAT(said.take("b", kProd, 8 * kMegabyte), IsEmpty());
}

}  // namespace
}  // namespace driftd::test
