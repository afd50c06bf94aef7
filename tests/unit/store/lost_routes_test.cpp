// SPDX-License-Identifier: Apache-2.0
// A page of `route` or `delivery` that the disk lost leaves no row with a wrong checksum. The totals of the sinks say
// what is missing, and each start gives it to them again.
#include <gmock/gmock.h>
#include <algorithm>

#include "proto/codec.hpp"
#include "store/backup.hpp"
#include "unit/store/outbox_fixture.hpp"

namespace driftd::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Once as a store of which each start reads everything, once as a large one.
class LostRoutesTest : public OutboxTest, public ::testing::WithParamInterface<std::int64_t> {
 protected:
  void SetUp() override {
    bench.settings.checked_at_start = GetParam();
    OutboxTest::SetUp();
    bench.get(bench->open_sink("desk"));
    seqs = emit(40, {"ops", "desk"});
  }
  /// Loses rows while the store is closed, and starts again.
  void lose(const std::string& sql) {
    bench.close();
    tamper(file(), sql);
    const auto verified = store::verify(file());
    ASSERT_FALSE(verified) << "`driftd verify` finds it too";
    EXPECT_THAT(verified.error().message, AnyOf(HasSubstr("missing"), HasSubstr("checksum")));
    const auto opened = bench.open();
    ASSERT_TRUE(opened) << opened.error().message;
  }
  std::string between(std::size_t first, std::size_t last) const {
    return " BETWEEN " + std::to_string(seqs[first]) + " AND " + std::to_string(seqs[last]);
  }
  /// Returns what a sink still gets, without events about the agent itself.
  Seqs outstanding(const std::string& sink) {
    const auto cursor = bench.get(bench->open_sink(sink));
    Seqs asked;
    for (const auto& one : cursor.exceptions) asked.push_back(one.seq);
    auto events = bench.get(bench->fetch_exact(sink, asked));
    for (auto& event : bench.get(bench->fetch(sink, cursor.low_water, 1'000))) events.push_back(std::move(event));
    Seqs out;
    for (const auto& event : events) {
      if (!event.agent_event) out.push_back(event.stamp.seq);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
  std::vector<std::string> corrupt() {
    std::vector<std::string> out;
    for (const auto& event : bench.get(bench->events(0, 100'000))) {
      if (event.what == "corrupt") out.push_back(proto::to_json(event).value());
    }
    return out;
  }
  /// The books are exact, nothing is wrong any more, and no later start says it again.
  void expect_mended(std::size_t told) {
    for (const auto& sink : {"ops", "desk"}) {
      const auto read = book(sink);
      EXPECT_EQ(read.emitted, read.acked + read.pending + read.dead + read.dropped) << sink;
    }
    restart();
    EXPECT_EQ(corrupt().size(), told);
    const auto verified = store::verify(file());
    EXPECT_TRUE(verified) << verified.error().message;
  }

  Seqs seqs;
};

TEST_P(LostRoutesTest, LostPageOfRoutesIsRebuiltFromTheEvents) {
  settle({"ops", seqs[9], {}, {}, {}, {}});
  lose("DELETE FROM route WHERE sink = 1 AND seq" + between(5, 30));
  EXPECT_EQ(outstanding("ops"), Seqs(seqs.begin() + 10, seqs.end()));
  EXPECT_EQ(outstanding("desk"), seqs);
  EXPECT_EQ(book("ops").acked, 10) << "what it has got it does not get again";
  EXPECT_THAT(corrupt(), ElementsAre(AllOf(HasSubstr("26 routes"), HasSubstr("missing"))));
  expect_mended(1);
}

TEST_P(LostRoutesTest, AllRoutesOfAllSinksAreRebuilt) {
  lose("DELETE FROM route");
  EXPECT_EQ(outstanding("ops"), seqs);
  EXPECT_EQ(outstanding("desk"), seqs);
  EXPECT_THAT(corrupt(), ElementsAre(HasSubstr("80 routes")));
  expect_mended(1);
}

TEST_P(LostRoutesTest, RouteOfAFailedDeliveryIsRebuiltSoThatItDoesNotWaitForEver) {
  settle({"ops", seqs[9], {{seqs[3], 1, 0, false, "HTTP 500"}, {seqs[5], 9, 0, true, "HTTP 400"}}, {}, {}, {}});
  lose("DELETE FROM route WHERE sink = 1 AND seq" + between(3, 5));
  Seqs expected = {seqs[3], seqs[5]};
  expected.insert(expected.end(), seqs.begin() + 10, seqs.end());
  EXPECT_EQ(outstanding("ops"), expected);
  EXPECT_EQ(book("ops").dead, 1) << "a dead letter stays one";
  expect_mended(1);
}

/// Nothing else says which event was to be sent again, so the sink gets all.
TEST_P(LostRoutesTest, LostDeliveriesTakeTheMarkOfTheirSinkBack) {
  settle({"ops", seqs[9], {{seqs[3], 1, 0, false, "HTTP 500"}, {seqs[5], 9, 0, true, "HTTP 400"}}, {}, {}, {}});
  settle({"desk", seqs[9], {}, {}, {}, {}});
  lose("DELETE FROM delivery");
  EXPECT_EQ(outstanding("ops"), seqs);
  EXPECT_EQ(outstanding("desk"), Seqs(seqs.begin() + 10, seqs.end()));
  EXPECT_THAT(corrupt(), ElementsAre(AllOf(HasSubstr("2 deliveries of sink ops"), HasSubstr("missing"))));
  expect_mended(1);
}

TEST_P(LostRoutesTest, EventsThatAreGoneWithTheirRoutesAreToldAndTheSinksGetTheOthers) {
  settle({"ops", seqs[9], {{seqs[3], 1, 0, false, "HTTP 500"}}, {}, {}, {}});
  lose("DELETE FROM route WHERE seq" + between(3, 12) + "; DELETE FROM event WHERE seq" + between(3, 12));
  Seqs left = seqs;
  left.erase(left.begin() + 3, left.begin() + 13);
  EXPECT_EQ(outstanding("ops"), left);
  EXPECT_EQ(outstanding("desk"), left);
  EXPECT_THAT(corrupt(), ElementsAre(HasSubstr("4 deliveries of sink ops"), HasSubstr("10 deliveries of sink desk")));
  expect_mended(2);
}

/// The totals of a damaged mark say nothing, but the routes are still in the events.
TEST_P(LostRoutesTest, DamagedMarkAndLostRoutesTogetherLoseNothing) {
  settle({"ops", seqs[9], {}, {}, {}, {}});
  lose("DELETE FROM route WHERE seq" + between(5, 30) + "; UPDATE sink SET low_water = 3 WHERE name = 'ops'");
  EXPECT_EQ(outstanding("ops"), seqs);
  EXPECT_EQ(outstanding("desk"), seqs);
  expect_mended(2);
}

INSTANTIATE_TEST_SUITE_P(Size, LostRoutesTest, ::testing::Values(0, std::int64_t{1} << 30),
                         [](const auto& size) { return size.param == 0 ? "Large" : "Small"; });

}  // namespace
}  // namespace driftd::test
