// SPDX-License-Identifier: Apache-2.0
// A watch that catches up sends all intermediate states of a resource in one page. Only the last one counts.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr const char *kAgreed = R"({"partitions":3})", *kNine = R"({"partitions":9})", *kFour = R"({"partitions":4})";

class CatchingUp : public EngineOnTheStore {
 protected:
  CatchingUp() {
    line_->world->watches = true;
    line_->start(true);
    EXPECT_TRUE(
        eventually([&] { return line_->view().coverage.size() == 1 && line_->view().coverage[0].established; }));
  }
  void set(int number, const char* body) {
    line_->on_core([&] { return line_->world->resources[thing(number)] = body; });
  }
  /// Waits until the page's cursor is committed, or until the watch ended because of it.
  void replay(ScriptedSession::States states) {
    line_->on_core([&] {
      ledger().row().watch_cursor.clear();
      return 0;
    });
    line_->replay(std::move(states));
    EXPECT_TRUE(eventually([&] { return line_->on_core([&] { return ledger().row().watch_cursor; }) == "replayed"; }));
  }
  engine::Ledger& ledger() { return line_->engine().find("b")->ledger(); }
};

TEST_F(CatchingUp, AnOlderStateInFrontOfTheOneThatIsKnownEndsNoDrift) {
  set(1, kNine);
  line_->refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  const auto published = line_->events().size();
  replay({{thing(1), kAgreed}, {thing(1), kNine}});
  EXPECT_THAT(line_->drifts(), SizeIs(1)) << "it is not as it was agreed";
  EXPECT_EQ(line_->events().size(), published) << "nobody changed anything";
}

TEST_F(CatchingUp, TheLastOfManyStatesIsJudgedAlone) {
  set(1, kFour);
  replay({{thing(1), kNine}, {thing(2), kNine}, {thing(1), kFour}, {thing(2), kAgreed}});
  ASSERT_THAT(line_->drifts(true), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].resource, thing(1));
  EXPECT_EQ(line_->drifts()[0].changes[0].new_value, "4");
}

TEST_F(CatchingUp, WhatCameAndWentAgainIsTheLastOfBoth) {
  line_->on_core([&] { return line_->world->resources.erase(thing(3)); });
  replay({{thing(3), kNine}, {thing(3), ""}, {thing(3), kFour}, {thing(3), ""}});
  ASSERT_THAT(line_->drifts(true), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].operation, core::Operation::deleted);
  set(3, kAgreed);
  replay({{thing(3), ""}, {thing(3), kAgreed}});
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

}  // namespace
}  // namespace driftd::test
