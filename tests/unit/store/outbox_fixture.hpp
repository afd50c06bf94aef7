// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include "proto/codec.hpp"
#include "unit/store/bench.hpp"

namespace driftd::test {

using Seqs = std::vector<std::int64_t>;

/// A store with one sink, `ops`.
class OutboxTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    bench.get(bench->open_sink("ops"));
  }
  Seqs fetched(const std::string& sink, std::int64_t after = 0) {
    Seqs out;
    for (const auto& event : bench.get(bench->fetch(sink, after, 10'000))) out.push_back(event.stamp.seq);
    return out;
  }
  void settle(core::SinkSettlement settlement) {
    const auto settled = bench.wait(bench->settle(std::move(settlement)));
    ASSERT_TRUE(settled) << settled.error().message;
  }
  void expect_book(const std::string& sink, std::int64_t acked, std::int64_t pending, std::int64_t dead,
                   std::int64_t dropped) {
    const auto read = book(sink);
    EXPECT_EQ((std::vector{read.acked, read.pending, read.dead, read.dropped}),
              (std::vector{acked, pending, dead, dropped}));
    EXPECT_EQ(read.emitted, acked + pending + dead + dropped);
    std::int64_t with_reason = 0;
    for (const auto& [reason, count] : read.dropped_by) with_reason += count;
    EXPECT_EQ(with_reason, dropped);
  }
  /// Returns the newest event, which must be a gap.
  std::string last_gap() {
    const auto event = bench.get(bench->last_events(1)).front();
    EXPECT_EQ(event.what, "gap");
    return proto::to_json(event).value();
  }
};

}  // namespace driftd::test
