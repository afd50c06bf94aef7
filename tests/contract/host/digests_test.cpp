// SPDX-License-Identifier: Apache-2.0
// A refresh that takes digests of what it brought before (worker/sent_records.hpp), in both isolations.
#include "contract/host/session_fixture.hpp"

namespace driftd::test {
namespace {

TEST_P(SessionContract, ARefreshThatTakesDigestsGetsThemForWhatWasSentBefore) {
  auto& session = open({{"count", 6}, {"secret", "token-1"}});
  ASSERT_TRUE(refresh(session));
  const auto first = pages_->all[0].records;
  core::RefreshRequest request;
  request.digests = true;
  request.whole = {{"thing", "4"}};
  ASSERT_TRUE(refresh(session, request));
  const auto& again = pages_->all[0].records;
  ASSERT_EQ(again.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {  // those with something unread, the first other and the wanted one come whole
    EXPECT_EQ(again[i].digest, first[i].digest) << i;
    EXPECT_EQ(again[i].digest_only, i == 5) << i;
    EXPECT_EQ(again[i].body, again[i].digest_only ? "" : first[i].body) << i;
  }
  ASSERT_TRUE(refresh(session));
  EXPECT_FALSE(pages_->all[0].records[5].digest_only);
}

}  // namespace
}  // namespace driftd::test
