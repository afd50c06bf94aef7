// SPDX-License-Identifier: Apache-2.0
#include "engine/index.hpp"

#include <gtest/gtest.h>

namespace driftd::engine {
namespace {

Index::Entry entry(bool present, bool open, std::uint32_t run) {
  Index::Entry e;
  e.present = present;
  e.open = open;
  e.run = run;
  return e;
}

TEST(Index, CountsWhatARunDidNotSeePerKind) {
  Index index;
  index.put({"role", "a"}, entry(true, false, 2));
  index.put({"role", "b"}, entry(true, true, 1));
  index.put({"role", "c"}, entry(false, true, 1));
  index.put({"topic", "a"}, entry(true, false, 1));
  const auto count = index.count("role", 2);
  EXPECT_EQ(count.present, 2);
  EXPECT_EQ(count.missing, 1);
  EXPECT_EQ(count.open_unseen, 2);
  EXPECT_EQ(index.present(), 3);
}

TEST(Index, EntryIsAtMost32BytesSoThatAResourceCosts48) {
  EXPECT_LE(sizeof(Index::Entry), 32u);  // plus 16 of its key
}

TEST(Index, IdentitiesThatConcatenateAlikeAreDifferent) {
  Index index;
  index.put({"ab", "c"}, entry(true, false, 1));
  EXPECT_EQ(index.find({"a", "bc"}), nullptr);
  EXPECT_NE(index.find({"ab", "c"}), nullptr);
}

}  // namespace
}  // namespace driftd::engine
