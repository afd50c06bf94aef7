// SPDX-License-Identifier: Apache-2.0
// A provider that no longer has a kind under which something is stored: it was renamed, or its resources are parts of
// another kind now.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::DriftStatus;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class FormerKind : public testing::Test {
 protected:
  FormerKind() {
    line_->world->kinds = {"rule", "thing"};
    for (int i = 0; i < 30; ++i) {
      line_->world->resources[rule(i)] = R"({"n":1})";
      line_->world->resources[thing(i)] = R"({"n":1})";
    }
    line_->start(false);
    line_->refresh();
  }
  static core::ResourceId rule(int number) { return {"rule", "r" + std::to_string(number)}; }
  ScriptedWorld& world() { return *line_->world; }
  /// The agent starts again with a provider that has `rules`, one resource, instead of the kind `rule`.
  void restart() {
    const ScriptedWorld before = world();
    line_.reset();
    line_ = std::make_unique<EngineLine>(dir_);
    world() = before;
    world().kinds = {"rules", "thing"};
    std::erase_if(world().resources, [](const auto& one) { return one.first.kind == "rule"; });
    world().resources[{"rules", "all"}] = R"({"n":30})";
  }
  engine::CycleReport cycle() {
    line_->start(false);
    return line_->refresh();
  }
  std::vector<std::string> stored_kinds() {
    std::set<std::string> out;
    const std::string uid = line_->on_core([&] { return line_->engine().find("b")->ledger().row().uid; });
    const auto entries = line_->wait(line_->store().index(uid)).value();
    for (const auto& entry : entries) out.insert(entry.id.kind);
    return {out.begin(), out.end()};
  }
  TempDir dir_;
  std::unique_ptr<EngineLine> line_ = std::make_unique<EngineLine>(dir_);
};

TEST_F(FormerKind, IsDroppedWithoutADeletionAQuestionOrADriftOfTheNewKind) {
  restart();
  const auto report = cycle();
  ASSERT_TRUE(report.status) << report.status.error().message;
  EXPECT_TRUE(report.complete());
  EXPECT_THAT(line_->drifts(true), IsEmpty());
  EXPECT_THAT(stored_kinds(), testing::Not(testing::Contains("rule")));
  for (const auto& coverage : report.coverage) EXPECT_NE(coverage.kind, "rule");
  world().resources[{"rules", "all"}] = R"({"n":31})";
  line_->refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(1)) << "the new kind is compared";
}

TEST_F(FormerKind, RetiresItsOpenDriftsWithAnEventThatSaysWhy) {
  world().resources[rule(3)] = R"({"n":2})";
  world().resources.erase(rule(4));
  line_->refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(2));
  const std::size_t before = line_->events().size();
  restart();
  cycle();
  const auto events = line_->events();
  ASSERT_EQ(events.size(), before + 2);
  EXPECT_THAT(events.back().resource, testing::StartsWith("rule/r"));
  EXPECT_THAT(events.back().payload, HasSubstr("the provider has no kind rule any more"));
  EXPECT_THAT(line_->drifts(), IsEmpty());
  const auto all = line_->drifts(true);
  ASSERT_THAT(all, SizeIs(2));
  for (const auto& drift : all) {
    EXPECT_EQ(drift.status, DriftStatus::retired);
    EXPECT_EQ(drift.reason, "the provider has no kind rule any more");
  }
}

TEST_F(FormerKind, TakesAnOpenQuestionAboutItsDeletionsAlong) {
  std::erase_if(world().resources, [](const auto& one) { return one.first.kind == "rule"; });
  line_->refresh();
  ASSERT_THAT(line_->drifts(), SizeIs(1));
  ASSERT_EQ(line_->drifts()[0].resource.kind, "scope");
  restart();
  cycle();
  EXPECT_THAT(line_->drifts(), IsEmpty());
  EXPECT_THAT(stored_kinds(), testing::Not(testing::Contains("rule")));
}

/// Until everything was listed, the plugin may be one that does not work.
TEST_F(FormerKind, StaysUntilTheNewPluginHasListedEverything) {
  restart();
  world().refresh_fails = Error{Code::unavailable, "down"};
  cycle();
  EXPECT_THAT(stored_kinds(), testing::Contains("rule"));
  world().refresh_fails.reset();
  line_->refresh();
  EXPECT_THAT(stored_kinds(), testing::Not(testing::Contains("rule")));
}

TEST_F(FormerKind, ThatComesBackHasANewBaseline) {
  restart();
  cycle();
  const ScriptedWorld now = world();
  line_.reset();
  line_ = std::make_unique<EngineLine>(dir_);
  world() = now;
  world().kinds = {"rule", "thing"};
  world().resources.erase({"rules", "all"});
  world().resources[rule(1)] = R"({"n":7})";
  cycle();
  EXPECT_THAT(line_->drifts(true), IsEmpty());
  world().resources[rule(1)] = R"({"n":8})";
  line_->refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(1));
}

}  // namespace
}  // namespace driftd::test
