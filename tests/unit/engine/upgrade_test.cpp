// SPDX-License-Identifier: Apache-2.0
// A provider with a newer schema revision over a store written under an older one.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Revision 1 calls it `length`, revision 2 `size`.
std::string schema_document(int revision) {
  return R"({"schema":"driftd-schema/1","kind":"thing","revision":)" + std::to_string(revision) +
         R"(,"class":"config","title":"t","attributes":{")" + (revision == 1 ? "length" : "size") +
         R"(":{"type":"int"}}})";
}

class UpgradedProvider : public testing::Test {
 protected:
  UpgradedProvider() {
    revision(1);
    has(R"({"length":1})");
    line_->start(false);
    line_->refresh();
  }
  static core::ResourceId id() { return {"thing", "a"}; }
  ScriptedWorld& world() { return *line_->world; }
  void has(const std::string& body) { world().resources[id()] = body; }
  void revision(int number) { world().schemas["thing"] = schema_document(number); }
  /// The agent starts again with a provider of revision 2.
  void restart(bool upgrades) {
    line_.reset();
    line_ = std::make_unique<EngineLine>(dir_);
    revision(2);
    if (upgrades) world().extensions = {"driftd.upgrade"};
    world().upgrades[R"({"length":1})"] = R"({"size":1})";
  }
  TempDir dir_;
  std::unique_ptr<EngineLine> line_ = std::make_unique<EngineLine>(dir_);
};

TEST_F(UpgradedProvider, ConvertsStoredBaselinesOnceAndFindsWhatDriftedMeanwhile) {
  restart(true);
  has(R"({"size":2})");
  line_->start(false);
  line_->refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_EQ(line_->drifts()[0].changes[0].path, "size");
  EXPECT_EQ(line_->drifts()[0].changes[0].old_value, "1");
  has(R"({"size":3})");
  line_->refresh();
  EXPECT_THAT(world().upgraded, ElementsAre(R"(thing 1 {"length":1})"));
}

TEST_F(UpgradedProvider, WithoutTheExtensionTheRetypedAttributeIsANewBaseline) {
  restart(false);
  has(R"({"size":2})");
  line_->start(false);
  line_->refresh();
  EXPECT_THAT(line_->drifts(true), IsEmpty());
  EXPECT_THAT(world().upgraded, IsEmpty());
}

TEST_F(UpgradedProvider, ThatCannotConvertSaysSoInCoverageAndKeepsTheOpenDrift) {
  has(R"({"length":5})");
  line_->refresh();
  const std::string drift = line_->drifts().at(0).id;
  restart(true);
  world().upgrade_fails = Error{Code::internal, "index out of range"};
  has(R"({"size":5})");
  line_->start(false);
  const auto report = line_->refresh();
  EXPECT_EQ(report.coverage.at(0).unknown, 1);
  EXPECT_THAT(report.coverage.at(0).reasons.at(0), HasSubstr("schema revision 1: index out of range"));
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  EXPECT_TRUE(line_->drifts()[0].stale_since_ns);
  world().upgrade_fails.reset();
  line_->refresh();
  EXPECT_EQ(line_->drifts().at(0).id, drift) << "the same drift, under the new name";
  EXPECT_EQ(line_->drifts()[0].changes[0].path, "size");
  EXPECT_FALSE(line_->drifts()[0].stale_since_ns);
}

TEST_F(UpgradedProvider, ThatDoesNotKnowTheRevisionIsAsOneWithoutTheExtension) {
  restart(true);
  world().upgrades.clear();
  has(R"({"size":2})");
  line_->start(false);
  line_->refresh();
  EXPECT_THAT(line_->drifts(true), IsEmpty());
  EXPECT_THAT(world().upgraded, SizeIs(1));
}

TEST_F(UpgradedProvider, ThatCannotConvertIsAskedAgainInEachCycleAlsoWithCursors) {
  restart(true);
  world().cursors = true;
  world().upgrade_fails = Error{Code::internal, "index out of range"};
  has(R"({"size":2})");
  line_->start(false);
  line_->refresh(false);
  ASSERT_THAT(line_->drifts(), IsEmpty());
  world().upgrade_fails.reset();
  line_->refresh(false);
  EXPECT_THAT(line_->drifts(), SizeIs(1));
}

/// Without the note a later revision would not know the classes of what this one stored.
TEST_F(UpgradedProvider, WhoseSchemaCouldNotBeNotedIsNotedByTheNextCycle) {
  restart(true);
  line_->start(false);
  const std::string store = dir_.file("data/store.db");
  tamper(store, "CREATE TRIGGER no BEFORE UPDATE ON backend BEGIN SELECT RAISE(ABORT, 'no more rows'); END");
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(line_->refresh().status);
  EXPECT_LE(line_->view().next_ns - SystemClock().wall(), 6'000'000'000)
      << "it is the store's fault, not the backend's";
  tamper(store, "DROP TRIGGER no");
  EXPECT_TRUE(line_->refresh().status);
  const auto noted =
      line_->on_core([&] { return line_->engine().find("b")->ledger().row().notes.contains("schema:thing:2"); });
  EXPECT_TRUE(noted);
}

/// The provider has a new revision at each start, as from a build stamp. The notes in its row are bounded.
class RestlessProvider : public testing::Test {
 protected:
  RestlessProvider() {
    now_says(1);
    has("a");
  }
  ScriptedWorld& world() { return *line_->world; }
  void has(const std::string& id) { world().resources[{"thing", id}] = R"({"size":1})"; }
  void now_says(int revision) {
    world().schemas["thing"] = R"({"schema":"driftd-schema/1","kind":"thing","revision":)" + std::to_string(revision) +
                               R"(,"title":"t","attributes":{"size":{"type":"int"}}})";
  }
  void cycle() {
    line_->start(false);
    report_ = line_->refresh();
    ASSERT_TRUE(report_.status) << report_.status.error().message;
  }
  void restart(int revision) {
    const ScriptedWorld before = world();
    line_.reset();
    line_ = std::make_unique<EngineLine>(dir_);
    world() = before;
    now_says(revision);
  }
  std::vector<std::string> kept() {
    std::vector<std::string> out;
    const auto notes = line_->on_core([&] { return line_->engine().find("b")->ledger().row().notes; });
    for (const auto& [note, text] : notes) {
      if (note.starts_with("schema:thing:") && !text.empty()) out.push_back(note.substr(13));
    }
    return out;
  }
  TempDir dir_;
  std::unique_ptr<EngineLine> line_ = std::make_unique<EngineLine>(dir_);
  engine::CycleReport report_;
};

TEST_F(RestlessProvider, LeavesNoRevisionThatNothingIsStoredUnder) {
  cycle();
  for (int revision = 2; revision <= 20; ++revision) {
    restart(revision);
    cycle();
    EXPECT_LE(kept().size(), 2u) << revision;
  }
  EXPECT_THAT(kept(), ElementsAre("19", "20")) << "19: what had not been seen when 20 came";
  EXPECT_THAT(line_->drifts(true), IsEmpty());
}

TEST_F(RestlessProvider, KeepsTheRevisionThatSomethingIsStoredUnder) {
  has("old");
  cycle();
  world().resources.erase({"thing", "old"});
  world().sends_complete = false;  // it may be there
  for (int revision = 2; revision <= 5; ++revision) {
    restart(revision);
    cycle();
  }
  EXPECT_THAT(kept(), ElementsAre("1", "4", "5"));
  EXPECT_THAT(report_.coverage.at(0).reasons, testing::Each(testing::Not(HasSubstr("schema"))));
}

TEST_F(RestlessProvider, WithSomethingUnderEachRevisionKeepsTheLastAndSaysSo) {
  world().sends_complete = false;
  cycle();
  for (int revision = 2; revision <= 25; ++revision) {
    restart(revision);
    world().resources.clear();
    has("only at " + std::to_string(revision));
    cycle();
  }
  EXPECT_THAT(kept(), SizeIs(17)) << "and the one of now";
  EXPECT_THAT(kept(), testing::Contains("24"));
  EXPECT_THAT(kept(), testing::Not(testing::Contains("2")));
  EXPECT_THAT(report_.coverage.at(0).reasons, testing::Contains(HasSubstr("budget: 8 earlier schema revisions")));
}

}  // namespace
}  // namespace driftd::test
