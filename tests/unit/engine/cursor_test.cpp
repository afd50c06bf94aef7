// SPDX-License-Identifier: Apache-2.0
// A cursor stands for the rows of the list that it came with. What became a row in another way, or did not become one,
// is listed again.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class CursorOfAList : public EngineOnTheStore {
 protected:
  CursorOfAList() { line_->world->cursors = true; }
  engine::CycleReport by_cursor(const std::string& backend = {}) { return line_->refresh(false, backend); }
  /// Makes the source report this registration of the backend.
  void report(const std::string& topic) {
    line_->source->kinds = {"registration", "object"};
    line_->source->schemas["registration"] = R"({"schema":"driftd-schema/1","kind":"registration","attributes":{}})";
    line_->source->declared_kinds = {{"b", "registration"}};
    line_->source->declared[{"b", {"registration", "b"}}] = R"({"topic":")" + topic + R"("})";
  }
};

TEST_F(CursorOfAList, EndsWithTheNextListEvenIfThatHasNone) {
  baseline();
  line_->world->resources[thing(7)] = R"({"partitions":4})";
  line_->world->checkpoints = false;  // the system moved while it was listed
  ASSERT_FALSE(by_cursor().unchanged);
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  line_->world->resources[thing(7)] = R"({"partitions":3})";
  line_->world->checkpoints = true;
  EXPECT_FALSE(by_cursor().unchanged) << "the system is as at the cursor before, but the rows are not";
  EXPECT_THAT(line_->drifts(), IsEmpty());
  EXPECT_TRUE(by_cursor().unchanged);
}

/// Cycles, and a watch that sends hints.
class CursorOfALoop : public CursorOfAList {
 protected:
  CursorOfALoop() {
    line_->interval = std::chrono::hours(1);
    line_->world->watches = true;
    line_->start(true);
    EXPECT_TRUE(eventually([&] { return listed(); }));
    line_->hint();
    EXPECT_TRUE(eventually([&] { return line_->on_core([&] { return line_->world->unchanged > 0; }); }));
  }
  bool listed() {
    const auto view = line_->view();
    return view.coverage.size() == 1 && view.coverage[0].established;
  }
  /// Removes a resource. A read says whether it is there from read number `from` on.
  void no_read_answers(int number, int from) {
    line_->on_core([&] {
      line_->world->unreadable = {thing(number)};
      line_->world->resources.erase(thing(number));
      line_->world->before_read = [this, from] {
        if (++reads_ == from) line_->world->unreadable.clear();
      };
    });
  }
  bool is_deleted(int number) {
    const auto gone = all(core::Operation::deleted);
    return gone.size() == 1 && gone[0].resource == thing(number);
  }
  int reads_ = 0;  // core thread
};

TEST_F(CursorOfALoop, DoesNotStandForADeletionThatNoReadAnswered) {
  no_read_answers(7, 2);
  line_->hint();
  EXPECT_TRUE(eventually([&] { return is_deleted(7); }));
}

TEST_F(CursorOfALoop, DoesNotStandForATombstoneThatNoReadAnswered) {
  no_read_answers(7, 2);
  line_->on_core([&] { line_->world->always_unchanged = true; });  // the watch has sent it
  line_->replay({{thing(7), ""}});
  EXPECT_TRUE(eventually([&] { return is_deleted(7); }));
}

TEST_F(CursorOfALoop, ADeletionThatNoReadEverAnswersIsListedAgainOnceAMinute) {
  no_read_answers(7, 1'000);
  line_->hint();
  EXPECT_TRUE(eventually([&] { return line_->on_core([&] { return reads_ == 2; }); }));
  const std::string why = testing::PrintToString(line_->view().coverage[0].reasons);
  EXPECT_THAT(why, testing::HasSubstr("thing/t7 is missing from the list, and no read answered whether it is gone"));
  const auto before = line_->on_core([&] { return line_->world->unchanged; });
  line_->hint();
  EXPECT_TRUE(eventually([&] { return line_->on_core([&] { return line_->world->unchanged > before; }); }));
  EXPECT_EQ(line_->on_core([&] { return reads_; }), 2);
  line_->clock->pass(std::chrono::minutes(2));
  line_->hint();
  EXPECT_TRUE(eventually([&] { return line_->on_core([&] { return reads_ == 3; }); }));
  EXPECT_THAT(all(core::Operation::deleted), IsEmpty());
}

TEST_F(CursorOfALoop, DoesNotStandForWhatAReadFoundBehindTheList) {
  line_->on_core([&] {
    line_->world->resources.erase(thing(7));
    line_->world->before_read = [this] { line_->world->resources[thing(7)] = R"({"partitions":4})"; };
  });
  line_->hint();
  ASSERT_TRUE(eventually([&] { return line_->drifts().size() == 1; }));
  line_->on_core([&] {
    line_->world->before_read = nullptr;
    line_->world->resources.erase(thing(7));  // as when it was listed
  });
  line_->hint();
  EXPECT_TRUE(eventually([&] { return is_deleted(7); }));
}

TEST_F(CursorOfALoop, DoesNotStandForAPageOfTheWatchThatTheStoreRefused) {
  line_->on_core([&] {
    line_->world->always_unchanged = true;  // the watch has sent it
    line_->world->resources[thing(7)] = R"({"partitions":4})";
    line_->cut().commits_left = 0;
  });
  line_->change(thing(7));
  const auto refused = [&] { return line_->engine().find("b")->ledger().unstored() > 0; };
  ASSERT_TRUE(eventually([&] { return line_->on_core(refused); }));
  line_->on_core([&] { line_->cut().commits_left = -1; });
  EXPECT_TRUE(eventually([&] { return line_->drifts().size() == 1; }));
}

TEST_F(CursorOfAList, DoesNotStandForAReportOfASourceThatIsTrustedOnlyNow) {
  report("one");
  line_->spoken_by = {};
  line_->source->cursors = true;
  line_->start(false);
  for (const char* name : {"source", "b", "source"}) (void)line_->refresh(true, name);
  ASSERT_TRUE(by_cursor("source").unchanged);
  engine::Engine::Change trusted{line_->on_core([&] { return line_->engine().find("b")->ledger().spec(); })};
  trusted.spec.spoken_by = {{"source", ""}};
  std::vector<engine::Engine::Change> changes(1, trusted);
  for (const auto& done : line_->wait(line_->engine().apply(std::move(changes)))) EXPECT_TRUE(done.has_value());
  EXPECT_FALSE(by_cursor("source").unchanged);
}

TEST_F(CursorOfAList, DoesNotStandForAReportThatTheStoreRefused) {
  report("one");
  line_->start(false);
  for (const char* name : {"source", "b", "source", "b"}) (void)line_->refresh(true, name);
  line_->world->always_unchanged = true;
  ASSERT_TRUE(by_cursor("b").unchanged);
  report("two");
  line_->on_core([&] { line_->cut().commits_left = 0; });
  (void)line_->refresh(true, "source");
  (void)by_cursor("b");  // behind the report, which waits for the same lock
  line_->on_core([&] { line_->cut().commits_left = -1; });
  ASSERT_THAT(line_->drifts(), IsEmpty());
  (void)by_cursor("b");
  EXPECT_THAT(line_->drifts(), SizeIs(1));
}

}  // namespace
}  // namespace driftd::test
