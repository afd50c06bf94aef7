// SPDX-License-Identifier: Apache-2.0
// A source may name any backend in its records. However many it names, the agent stays fast, reports what it left out,
// and withdraws none of it.
#include "on_the_store.hpp"
#include "support/patience.hpp"

namespace driftd::test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

core::Mark complete(std::string backend, std::string kind, std::uint64_t count) {
  core::Mark out;
  out.type = core::Mark::Type::complete;
  out.backend = std::move(backend);
  out.kind = std::move(kind);
  out.count = count;
  return out;
}

core::Observation record(std::string backend, core::ResourceId id, std::string body = R"({"partitions":12})") {
  core::Observation out;
  out.backend = std::move(backend);
  out.digest = digest(1, {id.kind, id.id, body});
  out.id = std::move(id);
  out.body = std::move(body);
  out.observed_ns = SystemClock().wall();
  return out;
}

class ManyOthers : public EngineOnTheStore {
 protected:
  ManyOthers() { line_->source->kinds = {"instance"}; }
  /// Records for backends that nobody configured, in pages as the host cuts them.
  std::vector<core::RecordPage> nobodies(int count, const std::string& kind = "thing") {
    std::vector<core::RecordPage> out;
    for (int i = 0; i < count; ++i) {
      if (i % 512 == 0) out.emplace_back();
      out.back().records.push_back(
          record("nobody" + std::to_string(i), {kind, std::string(60, 'x') + std::to_string(i)}));
    }
    return out;
  }
  void cycle() { report_ = line_->refresh(true, "source"); }
  core::Coverage line(const std::string& kind) {
    const auto found = std::ranges::find(report_.coverage, kind, &core::Coverage::kind);
    return found == report_.coverage.end() ? core::Coverage{} : *found;
  }
  std::vector<core::DeclaredEntry> stored() {
    const std::string uid = line_->on_core([&] { return line_->engine().find("source")->ledger().row().uid; });
    return line_->wait(line_->store().declared_by(uid)).value();
  }
  bool has(const std::string& backend) {
    const auto all = stored();
    return std::ranges::find(all, backend, &core::DeclaredEntry::target) != all.end();
  }
};

TEST_F(ManyOthers, AHundredThousandOfThemStopNothingAndAreOneLine) {
  line_->source->pages = nobodies(100'000);
  line_->start(false);
  const auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < 2; ++i) cycle();
  const auto views = line_->on_core([&] { return line_->engine().view(); });
  EXPECT_LT(std::chrono::steady_clock::now() - before, kPatience * std::chrono::seconds(5));
  EXPECT_LE(report_.coverage.size(), 1'002u);
  EXPECT_THAT(line("declared:*/*").reasons,
              testing::Contains(HasSubstr("90000 of what this source says of other backends is left out")));
  EXPECT_FALSE(report_.complete());
  EXPECT_LE(stored().size(), 10'000u);
}

TEST_F(ManyOthers, WhatIsSaidOfAConfiguredBackendIsHeardAmongThem) {
  line_->source->pages = nobodies(20'000);
  line_->source->pages.emplace_back();
  line_->source->pages.back().records.push_back(record("b", thing(1)));
  line_->source->pages.back().marks.push_back(complete("b", "thing", 1));
  line_->start(false);
  refresh();
  cycle();
  EXPECT_TRUE(line("declared:b/thing").complete);
  EXPECT_TRUE(has("b"));
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(1));
}

TEST_F(ManyOthers, WhatABoundLeftOutIsNotTakenBack) {
  const auto rule = [&](const char* backend) {
    core::RecordPage page;
    page.records.push_back(record(backend, thing(1)));
    page.marks.push_back(complete(backend, "thing", 1));
    return page;
  };
  line_->source->pages = {rule("later")};
  line_->start(false);
  cycle();
  ASSERT_TRUE(report_.complete()) << reasons();
  ASSERT_TRUE(has("later"));
  line_->source->pages = nobodies(10'001);
  line_->source->pages.push_back(rule("later"));
  cycle();
  ASSERT_EQ(line("declared:later/thing").kind, "");
  EXPECT_TRUE(has("later"));
  line_->source->pages = {rule("another")};
  cycle();
  EXPECT_FALSE(has("later")) << "a run that has room for all says that it is over";
  EXPECT_TRUE(has("another"));
}

TEST_F(ManyOthers, EachLineIsThereWhileTheyAreFew) {
  line_->source->pages = nobodies(1'000);
  line_->start(false);
  cycle();
  EXPECT_EQ(line("declared:*/*").kind, "");
  EXPECT_EQ(line("declared:nobody999/thing").resources, 1);
}

TEST_F(ManyOthers, TheLineOfAllOthersSaysWhatIsAmissInThem) {
  line_->source->pages = nobodies(3'000);
  core::Diagnostic denied{Code::denied, "thing", {}, {}, "no right to see it", {}, 0, "zz-last"};
  line_->source->pages.back().diagnostics.push_back(denied);
  line_->start(false);
  cycle();
  const core::Coverage others = line("declared:*/*");
  EXPECT_EQ(others.resources, 2'000);
  EXPECT_FALSE(others.complete);
  EXPECT_THAT(others.reasons, testing::Contains("zz-last/thing: denied: no right to see it"));
  EXPECT_THAT(others.reasons, Each(Not(HasSubstr("left out"))));
}

TEST_F(ManyOthers, MarksWithNamesThatNothingHasAreLeftOutToo) {
  line_->source->pages = nobodies(1'000);
  for (auto& page : line_->source->pages) page.marks.push_back(complete("b", "nothing" + std::string(5'000, 'x'), 0));
  line_->start(false);
  cycle();
  EXPECT_THAT(line("declared:*/*").reasons, SizeIs(1)) << reasons();
}

TEST(DeclaresOfASource, HaveABoundThatForgetsNothing) {
  engine::DeclarationSet declares;
  const auto one = [](int i) { return record("later", thing(i)); };
  for (int i = 0; i < 250'000; ++i) ASSERT_TRUE(declares.has_room(one(i)) && declares.update(one(i), "uid", 1));
  EXPECT_FALSE(declares.has_room(one(250'000)));
  EXPECT_TRUE(declares.has_room(one(7))) << "what is known may change";
  core::Observation gone = one(250'000);
  gone.tombstone = true;
  EXPECT_TRUE(declares.has_room(gone));
  EXPECT_FALSE(declares.update(gone, "uid", 1));
}

}  // namespace
}  // namespace driftd::test
