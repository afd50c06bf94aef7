// SPDX-License-Identifier: Apache-2.0
// What one namespace of a source does with its backends must not affect others: room, deletions, what cannot be read.
#include "on_the_store.hpp"

namespace driftd::test {
namespace {

using core::Decision;
using testing::HasSubstr;
using testing::Not;

class Shares : public EngineOnTheStore {
 protected:
  Shares() { prepare(); }
  void prepare() {
    source().kinds = {"object"};
    source().extensions = {"driftd.discover"};
    source().discovered.complete = true;
    line_->interval = std::chrono::milliseconds(1);
  }
  ScriptedWorld& source() { return *line_->source; }
  void restart() {
    const ScriptedWorld b = *line_->world, s = source();
    line_.reset();
    line_ = std::make_unique<EngineLine>(dir_);
    *line_->world = b;
    source() = s;
    prepare();
    line_->start(false);
  }
  /// Adds backends `first` to `last` of a namespace: `tenant-7`.
  void define(const std::string& name_space, int first, int last) {
    for (int i = first; i < last; ++i) {
      core::Discovered out;
      out.name = name_space + "-" + std::to_string(i);
      out.type = "redis";
      if (!name_space.starts_with("anywhere")) out.metadata = {{"defined_in", name_space}};
      source().discovered.backends.push_back(std::move(out));
    }
  }
  void give_up(const std::string& name_space, int first, int last) {
    for (int i = first; i < last; ++i) {
      std::erase_if(source().discovered.backends,
                    [&](const auto& one) { return one.name == name_space + "-" + std::to_string(i); });
    }
  }
  void look() { report_ = line_->refresh(true, "source"); }
  /// Runs so many discoveries that missing backends would be unregistered.
  void look_long() {
    for (int i = 0; i < 6; ++i) {
      const auto moment = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - moment < std::chrono::milliseconds(2)) look();
    }
  }
  std::size_t count(const std::string& name_space) {
    const auto views = line_->on_core([&] { return line_->engine().view(); });
    return static_cast<std::size_t>(
        std::ranges::count_if(views, [&](const auto& v) { return v.name.starts_with(name_space + "-"); }));
  }
  /// Reasons of the line `discovered` in the source's coverage.
  std::string reasons() {
    const auto views = line_->on_core([&] { return line_->engine().view(); });
    std::string out;
    for (const auto& view : views) {
      for (const auto& line : view.coverage) {
        for (const auto& reason : line.reasons) out += line.kind == "discovered" ? reason + "\n" : "";
      }
    }
    return out;
  }
  std::size_t questions() {
    const auto all = line_->drifts();
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [](const auto& d) { return render(d.resource) == "scope/discovered"; }));
  }
  bool gone(const std::string& name_space, std::size_t left) {
    return eventually([&] {
      look();
      return count(name_space) == left;
    });
  }
};

TEST_F(Shares, ANamespaceFillsItsOwnShareAlone) {
  define("a-tenant", 0, 300);
  define("prod", 0, 3);
  line_->start(false);
  look();
  EXPECT_EQ(count("prod"), 3u);
  EXPECT_EQ(count("a-tenant"), 250u);
  EXPECT_THAT(reasons(), HasSubstr("namespace a-tenant: at most 250 backends of one namespace"));
  EXPECT_THAT(reasons(), Not(HasSubstr("a-tenant-299"))) << "said once, not of each";
  EXPECT_EQ(count("a-tenant"), 250u) << "those that it had stay";
}

TEST_F(Shares, ManyNamespacesShareASource) {
  for (const char* each : {"a", "b", "c", "d", "e"}) define(each, 0, 210);
  line_->start(false);
  look();
  for (const char* each : {"a", "b", "c", "d", "e"}) EXPECT_EQ(count(each), 210u) << each;
}

TEST_F(Shares, ASourceWithoutNamespacesHasItsRoomWhole) {
  define("anywhere", 0, 1'003);
  line_->start(false);
  look();
  EXPECT_EQ(count("anywhere"), 1'000u);
  EXPECT_THAT(reasons(), HasSubstr("at most 1000 backends of one source"));
}

TEST_F(Shares, WhatOneGivesUpAtOnceHoldsNothingOfAnother) {
  define("tenant", 0, 13);
  define("prod", 0, 5);
  line_->start(false);
  look();
  give_up("tenant", 0, 12);
  look_long();
  EXPECT_EQ(count("tenant"), 13u) << "held";
  ASSERT_EQ(questions(), 1u);
  EXPECT_THAT(reasons(), HasSubstr("12 of 13 of namespace tenant gone at once"));
  give_up("prod", 0, 1);
  EXPECT_TRUE(gone("prod", 4)) << "its deletion waits for nobody's decision";
  give_up("tenant", 12, 13);
  look_long();
  EXPECT_EQ(count("tenant"), 13u) << "who is missing there belongs to the question";
  restart();
  give_up("prod", 1, 2);
  EXPECT_TRUE(gone("prod", 3)) << "also after a restart";
  EXPECT_EQ(count("tenant"), 13u);
  look_long();
  for (const auto& drift : line_->drifts()) {
    if (render(drift.resource) != "scope/discovered") continue;
    ASSERT_TRUE(line_->decide(drift.id, decision(Decision::Verb::approve)));
  }
  EXPECT_TRUE(gone("tenant", 0));
  EXPECT_EQ(count("prod"), 3u);
}

/// Twelve backends are removed one by one, and a discovery comes in between.
TEST_F(Shares, WhatIsGivenUpWhileSomebodyLooksIsOneQuestion) {
  define("tenant", 0, 13);
  line_->start(false);
  look();
  give_up("tenant", 0, 3);
  look();
  give_up("tenant", 3, 12);
  look_long();
  EXPECT_EQ(count("tenant"), 13u);
  EXPECT_EQ(questions(), 1u);
  EXPECT_THAT(reasons(), HasSubstr("12 of 13 of namespace tenant gone at once"));
}

TEST_F(Shares, ARealMassDeletionIsHeldWhereverItIs) {
  for (const char* each : {"a", "b", "c", "d", "e"}) define(each, 0, 6);  // not too many of any single namespace
  line_->start(false);
  look();
  const auto all = source().discovered.backends;
  source().discovered.backends.clear();  // as after a change of the selector
  look_long();
  for (const char* each : {"a", "b", "c", "d", "e"}) EXPECT_EQ(count(each), 6u) << each;
  EXPECT_EQ(questions(), 1u);
  source().discovered.backends = all;
  EXPECT_TRUE(eventually([&] {
    look();
    return questions() == 0;
  }));
  give_up("a", 1, 3);
  EXPECT_TRUE(gone("a", 4));
  give_up("b", 0, 6), give_up("c", 0, 6), give_up("d", 0, 6), give_up("e", 0, 5);
  look_long();
  EXPECT_EQ(count("b") + count("c") + count("d") + count("e"), 24u) << "too much also without the place that lost most";
  EXPECT_EQ(questions(), 1u);
}

TEST_F(Shares, ANamespaceThatIsPassedOverKeepsWhatItHad) {
  define("tenant", 0, 4);
  define("prod", 0, 5);
  line_->start(false);
  look();
  give_up("tenant", 0, 4);
  give_up("prod", 0, 1);
  source().discovered.diagnostics = {
      {Code::budget, "registration", "", "tenant", "namespace tenant: too many", "", 0, ""}};
  EXPECT_TRUE(gone("prod", 4));
  look_long();
  EXPECT_EQ(count("tenant"), 4u);
  EXPECT_THAT(reasons(), HasSubstr("namespace tenant: too many"));
  source().discovered.diagnostics.clear();
  EXPECT_TRUE(gone("tenant", 0)) << "listed again: what is not there is gone";
}

TEST_F(Shares, ANamespaceThatIsPassedOverMakesNobodyElsesListLessWhole) {
  source().diagnostics = {{Code::budget, "registration", "", "tenant", "namespace tenant: too many", "", 0, ""}};
  define("prod", 0, 1);
  line_->start(false);
  look();
  EXPECT_TRUE(report_.complete());
  const auto line = std::ranges::find(report_.coverage, "declared:tenant/*/registration", &core::Coverage::kind);
  ASSERT_NE(line, report_.coverage.end());
  EXPECT_THAT(line->reasons, testing::ElementsAre(HasSubstr("namespace tenant: too many")));
}

}  // namespace
}  // namespace driftd::test
