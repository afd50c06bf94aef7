// SPDX-License-Identifier: Apache-2.0
// A mass deletion of more names than a question shows: what its approval covers, and what it never does.
#include "core/value/value.hpp"
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Decision;
using core::DriftStatus;
using core::Operation;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kAll = 260, kGone = 200;

class ManyGone : public EngineOnTheStore {
 protected:
  static core::ResourceId one(int number) {
    return {"thing", std::string(1'000, 'x') + std::to_string(1'000 + number)};
  }
  void put(int from, int to) {
    for (int i = from; i < to; ++i) line_->world->resources[one(i)] = R"({"partitions":3})";
  }
  void take(int from, int to) {
    for (int i = from; i < to; ++i) line_->world->resources.erase(one(i));
  }
  /// Two hundred of 260 are gone, and the question is open.
  void ask() {
    line_->world->resources.clear();
    put(0, kAll);
    baseline();
    take(0, kGone);
    refresh();
    ASSERT_THAT(questions(), SizeIs(1));
  }
  std::vector<core::Drift> questions() {
    std::vector<core::Drift> out;
    for (auto& drift : line_->drifts()) {
      if (render(drift.resource) == "scope/thing") out.push_back(std::move(drift));
    }
    return out;
  }
  core::Value question() { return core::parse(questions().at(0).changes.at(0).new_value.value()).value(); }
  void approve() {
    const auto done = line_->decide(questions().at(0).id, decision(Decision::Verb::approve));
    ASSERT_TRUE(done) << done.error().message;
  }
  std::size_t deletions(DriftStatus status) {
    const auto drifts = all(Operation::deleted);
    return static_cast<std::size_t>(
        std::count_if(drifts.begin(), drifts.end(), [&](const auto& d) { return d.status == status; }));
  }
};

TEST_F(ManyGone, TheQuestionShowsTheFirstNamesAndTheCountOfAll) {
  ask();
  const core::Value asked = question();
  EXPECT_EQ(core::render(*asked.find("count")), "200");
  EXPECT_LT(asked.find("names")->array()->size(), 66u);
  EXPECT_EQ(*asked.find("names")->array()->at(0).string(), one(0).id);
  ASSERT_NE(asked.find("sha256"), nullptr);
  EXPECT_THAT(*asked.find("sha256")->string(), SizeIs(64));
  EXPECT_LT(questions().at(0).changes.at(0).new_value->size(), 72u << 10);
  for (const auto& event : line_->events()) EXPECT_LT(event.payload.size(), 128u << 10) << event.what;
}

TEST_F(ManyGone, ApprovalAcceptsAllThatWereAskedAboutAndNothingElse) {
  ask();
  take(kGone, kGone + 3);
  approve();
  refresh();
  EXPECT_EQ(deletions(DriftStatus::approved), 200u);
  EXPECT_EQ(deletions(DriftStatus::pending), 3u);
  EXPECT_THAT(questions(), IsEmpty());
}

TEST_F(ManyGone, ANameBehindThoseThatAreShownMakesItAnotherQuestion) {
  ask();
  const auto before = questions().at(0);
  const std::string binding = line_->binding(before);
  put(kGone - 1, kGone);
  take(kGone, kGone + 1);  // as many, with the same first names
  refresh();
  ASSERT_THAT(questions(), SizeIs(1));
  auto stale = decision(Decision::Verb::approve);
  stale.digest = binding;
  const auto refused = line_->decide_as_is(questions().at(0).id, stale);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::conflict);
  refresh();
  EXPECT_THAT(all(Operation::deleted), IsEmpty());
}

TEST_F(ManyGone, ApprovalSurvivesARestart) {
  ask();
  approve();
  restart();
  refresh();
  EXPECT_TRUE(report_.complete()) << reasons();
  EXPECT_EQ(deletions(DriftStatus::approved), 200u);
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(ManyGone, ApprovalBeforeTheFirstLookOfAProcessHolds) {
  ask();
  restart();
  approve();
  refresh();
  EXPECT_EQ(deletions(DriftStatus::approved), 200u);
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

TEST_F(ManyGone, OthersThanThoseThatWereApprovedAreAskedAboutAgainAfterARestart) {
  ask();
  approve();
  restart();
  take(kGone, kGone + 1);
  refresh();
  EXPECT_THAT(all(Operation::deleted), IsEmpty());
  ASSERT_THAT(questions(), SizeIs(1));
  EXPECT_EQ(core::render(*question().find("count")), "201");
  put(kGone, kGone + 1);
  refresh();
  EXPECT_THAT(all(Operation::deleted), IsEmpty()) << "that approval is over";
  ASSERT_THAT(questions(), SizeIs(1)) << "held without a question that anybody could answer";
  EXPECT_EQ(core::render(*question().find("count")), "200");
  approve();
  refresh();
  EXPECT_EQ(deletions(DriftStatus::approved), 200u);
}

TEST_F(ManyGone, WhatCouldNotBeConfirmedStaysApprovedAlsoBeyondARestart) {
  ask();
  for (int i = 0; i < 150; ++i) line_->world->unreadable.insert(one(i));
  approve();
  refresh();
  EXPECT_EQ(deletions(DriftStatus::approved), 50u);
  take(kGone, kGone + 1);
  refresh();
  EXPECT_EQ(deletions(DriftStatus::pending), 1u);
  EXPECT_THAT(questions(), IsEmpty());
  restart();
  line_->world->unreadable.clear();
  refresh();
  EXPECT_EQ(deletions(DriftStatus::approved), 200u);
  EXPECT_EQ(deletions(DriftStatus::pending), 1u);
}

TEST_F(ManyGone, WhatCameBackIsApprovedNoLonger) {
  ask();
  approve();
  put(1, 2);
  refresh();
  EXPECT_EQ(deletions(DriftStatus::approved), 199u);
  take(1, 2);
  refresh();
  EXPECT_EQ(deletions(DriftStatus::approved), 199u);
  EXPECT_EQ(deletions(DriftStatus::pending), 1u);
}

/// As an older agent noted an approval: all names, however many.
TEST_F(ManyGone, AnApprovalWithAllItsNamesHolds) {
  ask();
  approve();
  another_process();
  std::string names;
  for (int i = 0; i < kGone; ++i) names += (i > 0 ? ",\"" : "\"") + one(i).id + "\"";
  const std::string note = R"({"by":"ann","names":[)" + names + "]}";
  tamper(dir_.file("data/store.db"),
         "UPDATE backend SET crc = NULL, notes = json_set(notes, '$.\"accept:scope/thing\"', '" + note +
             "') WHERE name = 'b'");
  take(kGone, kGone + 1);
  line_->start(false);
  refresh();
  EXPECT_EQ(deletions(DriftStatus::approved), 200u);
  EXPECT_EQ(deletions(DriftStatus::pending), 1u);
}

}  // namespace
}  // namespace driftd::test
