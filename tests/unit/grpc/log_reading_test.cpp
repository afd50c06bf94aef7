// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driftd/v1/service.pb.h"
#include "grpc/log_reading.hpp"
#include "support/sink_events.hpp"

namespace driftd::rpc {
namespace {

using testing::HasSubstr;

/// A log of incarnation 5 that holds these numbers, and has given numbers up to `newest`.
core::LogSlice log_of(const std::vector<std::int64_t>& seqs, std::int64_t newest, std::size_t bytes = 0) {
  core::LogSlice out;
  out.newest = newest;
  out.oldest = seqs.empty() ? newest + 1 : seqs.front();
  out.incarnation = 5;
  for (const auto seq : seqs) {
    out.events.push_back(test::sample_stored(seq));
    out.events.back().stamp.seq = seq;
    if (bytes != 0) out.events.back().payload.assign(bytes, 'x');
  }
  return out;
}

v1::SubscribeResponse parsed(const std::string& frame) {
  v1::SubscribeResponse out;
  EXPECT_TRUE(out.ParseFromString(frame));
  return out;
}

Batch batch_of(const core::LogSlice& log, std::int64_t after, const FilterSpec& spec = {}) {
  return make_batch(log, after, *Filter::make(spec));
}

TEST(TokenTest, ComesBackAsItWasGiven) {
  for (const ResumeToken& token :
       {ResumeToken{}, ResumeToken{1'764'000'000'000, 42}, ResumeToken{UINT64_MAX, INT64_MAX}}) {
    const auto read = parse_token(render(token));
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, token);
    EXPECT_LE(render(token).size(), 44u);
  }
}

TEST(TokenTest, AnyOtherTextIsRefusedWithTheNextStep) {
  const std::string good = render({7, 99});
  for (const std::string& text : std::vector<std::string>{
           std::string(), good.substr(1), good.substr(0, good.size() - 1), good + "0", "1.7.63.00000000",
           "1.7.0" + good.substr(4), std::string(1'000'000, '1'), std::string("1..."), std::string("-")}) {
    const auto read = parse_token(text);
    ASSERT_FALSE(read) << text.substr(0, 80);
    EXPECT_THAT(read.error().message, HasSubstr("START_OLDEST"));
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = changed[at] == '3' ? '4' : '3';
    EXPECT_FALSE(parse_token(changed)) << changed;
  }
}

TEST(BeginTest, NowIsAfterTheNewestAndOldestBeforeTheOldest) {
  EXPECT_EQ(begin_at({Start::At::now}, log_of({8, 9}, 9), 0).after, 9);
  EXPECT_EQ(begin_at({Start::At::oldest}, log_of({8, 9}, 9), 0).after, 7);
  EXPECT_EQ(begin_at({Start::At::oldest}, log_of({}, 9), 0).after, 9);
}

TEST(BeginTest, ATokenOfThisIncarnationContinuesWithoutAGap) {
  const Beginning begins = begin_at({Start::At::token, {5, 8}}, log_of({8, 9}, 9), 0);
  EXPECT_EQ(begins.after, 8);
  EXPECT_FALSE(begins.gap);
}

/// Numbers from 20 on may have been given twice: to an event that was lost, and to one of the new incarnation.
TEST(BeginTest, AnEarlierIncarnationIsAGapAndGetsAllOfTheNewOne) {
  const Beginning begins = begin_at({Start::At::token, {4, 25}}, log_of({10, 19, 20, 30}, 30), 20);
  EXPECT_EQ(begins.after, 19);
  ASSERT_TRUE(begins.gap);
  EXPECT_EQ(begins.gap->reason, GapReason::incarnation);
  EXPECT_EQ(begin_at({Start::At::token, {4, 12}}, log_of({10, 19, 20, 30}, 30), 20).after, 12);
}

TEST(BeginTest, ATokenOfAnotherStoreIsAGapAndGetsEverything) {
  for (const ResumeToken& token : {ResumeToken{6, 3}, ResumeToken{5, 10}}) {
    const Beginning begins = begin_at({Start::At::token, token}, log_of({8, 9}, 9), 0);
    EXPECT_EQ(begins.after, 7);
    ASSERT_TRUE(begins.gap);
    EXPECT_EQ(begins.gap->reason, GapReason::unknown_token);
  }
}

TEST(BatchTest, EachMessageHasATokenThatContinuesAfterIt) {
  const Batch batch = batch_of(log_of({3, 4}, 4), 2);
  ASSERT_EQ(batch.frames.size(), 2u);
  EXPECT_EQ(parsed(batch.frames[0]).event().resource_id(), "t3");
  EXPECT_EQ(parse_token(parsed(batch.frames[0]).resume_token()), (ResumeToken{5, 3}));
  EXPECT_EQ(batch.after, 4);
  EXPECT_TRUE(batch.at_end);
}

TEST(BatchTest, MissingNumbersAreNamed) {
  const Batch batch = batch_of(log_of({3, 7}, 9), 0);
  ASSERT_EQ(batch.frames.size(), 4u);
  EXPECT_EQ(parsed(batch.frames[0]).gap().from_seq(), 1);
  EXPECT_EQ(parsed(batch.frames[0]).gap().to_seq(), 2);
  EXPECT_EQ(parsed(batch.frames[2]).gap().from_seq(), 4);
  EXPECT_EQ(parsed(batch.frames[2]).gap().to_seq(), 6);
  EXPECT_EQ(parse_token(parsed(batch.frames[2]).resume_token()), (ResumeToken{5, 6}));
  EXPECT_FALSE(batch.at_end);
}

TEST(BatchTest, ALogWhoseRestIsGoneSaysSo) {
  const Batch batch = batch_of(log_of({}, 9), 4);
  ASSERT_EQ(batch.frames.size(), 1u);
  EXPECT_EQ(parsed(batch.frames[0]).gap().from_seq(), 5);
  EXPECT_EQ(parsed(batch.frames[0]).gap().to_seq(), 9);
  EXPECT_EQ(batch.after, 9);
  EXPECT_TRUE(batch.at_end);
}

TEST(BatchTest, WhatDoesNotMatchIsPassedWithoutAMessage) {
  const Batch batch = batch_of(log_of({1, 2}, 2), 0, {{"other"}});
  EXPECT_TRUE(batch.frames.empty());
  EXPECT_EQ(batch.after, 2);
}

TEST(BatchTest, HoldsNoMoreThanItsBytes) {
  const Batch batch = batch_of(log_of({1, 2, 3, 4, 5, 6, 7, 8, 9}, 9, 100 << 10), 0);
  EXPECT_EQ(batch.frames.size(), 3u);
  EXPECT_EQ(batch.after, 3);
  EXPECT_FALSE(batch.at_end);
}

}  // namespace
}  // namespace driftd::rpc
