// SPDX-License-Identifier: Apache-2.0
#include "engine/index.hpp"

#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "support/patience.hpp"

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

TEST(Index, CountsOfAllKindsInOnePassAreThoseOfEach) {
  std::mt19937 random(7);
  const auto upto = [&](unsigned most) { return static_cast<unsigned>(random() % most); };
  Index index;
  for (int i = 0; i < 20'000; ++i) {  // most of them again and again
    Index::Entry e = entry(upto(2) == 0, upto(3) == 0, upto(3));
    e.attention = upto(4) == 0;
    index.put({"kind-" + std::to_string(upto(40)), std::to_string(upto(100))}, e);
  }
  const auto all = index.counts(2);
  ASSERT_EQ(all.size(), 40u);
  std::int64_t present = 0;
  for (const auto& [kind, count] : all) {
    const Index::Count alone = index.count(kind, 2);
    EXPECT_EQ(std::tie(count.present, count.missing, count.open_unseen),
              std::tie(alone.present, alone.missing, alone.open_unseen));
    EXPECT_EQ(index.present(kind), alone.present);
    present += alone.present;
  }
  EXPECT_EQ(index.present(), present);
  EXPECT_EQ(index.present("none"), 0);
}

TEST(Index, CountsOfHundredsOfKindsOfAMillionResourcesTakeNoLongerThanOfOne) {
  Index index;
  for (int i = 0; i < 1'000'000; ++i)
    index.put({"kind-" + std::to_string(i % 256), std::to_string(i)}, entry(true, true, 1));
  const auto before = std::chrono::steady_clock::now();
  std::int64_t present = 0;
  for (int view = 0; view < 10; ++view) {
    for (const auto& [kind, count] : index.counts(1)) present += index.present(kind) - count.missing;
  }
  EXPECT_EQ(present, 10'000'000);
  EXPECT_LT(std::chrono::steady_clock::now() - before, test::kPatience * std::chrono::seconds(5));
}

TEST(Index, AQuestionAboutAKindMakesNone) {
  Index index;
  index.put({"role", "a"}, entry(true, false, 2));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(index.count("other-" + std::to_string(i), 2).present, 0);
  EXPECT_EQ(index.kinds(), std::vector<std::string>{"role"});
}

TEST(Index, ATimeOfBeforeTheClockBeganIsItsBegin) {
  EXPECT_EQ(Index::ticks(std::chrono::steady_clock::time_point(std::chrono::seconds(-5))), 0u);
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
