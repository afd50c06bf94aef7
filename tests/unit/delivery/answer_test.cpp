// SPDX-License-Identifier: Apache-2.0
#include "delivery/answer.hpp"

#include <gmock/gmock.h>

namespace driftd::delivery::test {
namespace {

using testing::ElementsAre;

core::StoredEvent event(std::int64_t seq, std::size_t bytes) {
  core::StoredEvent out;
  out.stamp.seq = seq;
  out.payload = std::string(bytes, 'p');
  return out;
}

TEST(Answer, IsFullWithTheEventThatReachesItsBytes) {
  EXPECT_FALSE(cut_by_size({}));
  EXPECT_FALSE(cut_by_size({event(1, core::Outbox::kMaxAnswerBytes - 1)}));
  EXPECT_TRUE(cut_by_size({event(1, core::Outbox::kMaxAnswerBytes - 1), event(2, 1)}));
}

TEST(Answer, ThatIsNotFullWasLookedForWhole) {
  EXPECT_THAT(covered_seqs({7, 3, 5}, {event(3, 10)}), ElementsAre(7, 3, 5));
}

TEST(Answer, ThatIsFullWasLookedForUpToItsLastEvent) {
  EXPECT_THAT(covered_seqs({7, 3, 5, 2}, {event(3, core::Outbox::kMaxAnswerBytes)}), ElementsAre(7, 3))
      << "7 left the store, of 5 and 2 nothing is known";
}

}  // namespace
}  // namespace driftd::delivery::test
