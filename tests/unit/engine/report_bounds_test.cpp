// SPDX-License-Identifier: Apache-2.0
// Reports that are rejected take bounded memory: any provider may name any backend, as often as it likes.
#include "on_the_store.hpp"
#include "support/heap/heap.hpp"
#include "support/patience.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr std::size_t kMegabyte = 1'000'000;

class Talkers : public EngineOnTheStore {
 protected:
  Talkers() {
    source().kinds = {"registration", "object"};
    source().extensions = {"driftd.discover"};
    source().schemas["registration"] = R"({"schema":"driftd-schema/1","kind":"registration","attributes":{}})";
    source().discovered.complete = true;
    line_->interval = std::chrono::milliseconds(1);
    line_->spoken_by = {};
  }
  ScriptedWorld& source() { return *line_->source; }
  void say(const std::string& backend, const std::string& place, const std::string& body) {
    if (source().pages.empty() || source().pages.back().records.size() == 512) source().pages.emplace_back();
    core::Observation out;
    out.backend = backend;
    out.id = {"registration", backend};
    out.body = body;
    out.digest = digest(1, {backend, place, body});
    out.observed_ns = SystemClock().wall();
    if (!place.empty()) out.metadata["defined_in"] = place;
    source().pages.back().records.push_back(std::move(out));
  }
  void cycle() { report_ = line_->refresh(true, "source"); }
  static std::string place(int number) { return std::string(240, 'p') + std::to_string(number); }
};

TEST_F(Talkers, ThatNobodyBelievesAreKeptWithinABound) {
  for (int i = 0; i < 40'000; ++i) say("b", place(i), "{}");
  line_->start(false);
  const HeapPeak heap;
  cycle();
  EXPECT_LT(heap.bytes(), 8 * kMegabyte);
  EXPECT_THAT(reasons(), HasSubstr("decide the drift of claim/b"));
  EXPECT_LT(reasons().size(), 100'000u);
}

TEST_F(Talkers, OfBackendsThatNobodyRegisteredAreKeptWithinABoundAndTold) {
  for (int i = 0; i < 4'000; ++i) say("later" + std::to_string(i), "", R"({"a":")" + std::string(50'000, 'x') + "\"}");
  line_->start(false);
  const HeapPeak heap;
  cycle();
  EXPECT_LT(heap.bytes(), 150 * kMegabyte) << "64 MiB of words, and the page that is judged";
  EXPECT_THAT(reasons(), HasSubstr("budget: at most 64 MiB"));
}

TEST_F(Talkers, OfOneBackendThatNobodyRegisteredStopNothing) {
  for (int i = 0; i < 50'000; ++i) say("later", place(i), "{}");
  line_->start(false);
  const auto before = std::chrono::steady_clock::now();
  cycle();
  EXPECT_LT(std::chrono::steady_clock::now() - before, kPatience * std::chrono::seconds(5));
  EXPECT_THAT(
      reasons(),
      HasSubstr("budget: a source may report on one backend that is not registered from at most 16 namespaces"));
}

TEST_F(Talkers, WithALongSchemaCopyItForNoWord) {
  source().schemas["registration"] = R"({"schema":"driftd-schema/1","kind":"registration","title":")" +
                                     std::string(kMegabyte, 't') + R"(","attributes":{}})";
  for (int i = 0; i < 500; ++i) say("later" + std::to_string(i), "", "{}");
  line_->start(false);
  const HeapPeak heap;
  cycle();
  EXPECT_LT(heap.bytes(), 50 * kMegabyte);
}

TEST_F(Talkers, FromAPlaceWithANameThatNoPlaceHasAreNotHeard) {
  say("b", std::string(254, 'p'), "{}");
  say("b", std::string(253, 'q'), "{}");
  line_->start(false);
  cycle();
  EXPECT_THAT(reasons(), HasSubstr("`defined_in` has 254 bytes; the name of a namespace has at most 253"));
  refresh();  // whose cycle waits for the question to be written
  ASSERT_THAT(line_->drifts(), SizeIs(1)) << "the question of claim/b";
  EXPECT_THAT(line_->drifts()[0].changes.at(0).new_value.value_or(""), Not(HasSubstr(std::string(254, 'p'))));
}

/// A report from before the last two lists that is in neither is dropped and takes no room.
TEST_F(Talkers, OfNamesThatComeAndGoFillNoRoomForEver) {
  for (int round = 0; round < 5; ++round) {
    source().pages.clear();
    for (int i = 0; i < 600; ++i)
      say("r" + std::to_string(round) + "n" + std::to_string(i), "", R"({"a":")" + std::string(50'000, 'x') + "\"}");
    if (round == 0) line_->start(false);
    cycle();
    EXPECT_THAT(reasons(), Not(HasSubstr("budget"))) << round;
  }
}

/// Of each registered backend the last report is kept: 250 reports of a megabyte in one namespace would be a quarter of
/// a gigabyte.
TEST_F(Talkers, OfBackendsThatAreRegisteredAreKeptWithinABoundAndTold) {
  const auto register_in = [&](const std::string& name, const std::string& place) {
    core::Discovered one;
    one.name = name;
    one.type = "redis";
    one.metadata["defined_in"] = place;
    source().discovered.backends.push_back(one);
  };
  for (int i = 0; i < 100; ++i) register_in("a" + std::to_string(i), "greedy");
  register_in("modest", "prod");
  line_->start(false);
  cycle();
  for (int i = 0; i < 100; ++i)
    say("a" + std::to_string(i), "greedy", R"({"a":")" + std::string(kMegabyte, 'x') + "\"}");
  say("modest", "prod", R"({"a":1})");
  const HeapPeak heap;
  cycle();
  source().pages.clear();  // the same report again, which is not in memory twice
  EXPECT_LT(heap.bytes(), 150 * kMegabyte) << "8 MiB of words in session and row, and a page of 100 MB that is judged";
  EXPECT_THAT(reasons(), HasSubstr("budget: reports on registered backends may have 8 MiB of one namespace"));
  (void)line_->refresh(true, "modest");
  (void)line_->refresh(true, "a99");
  const auto views = line_->on_core([&] { return line_->engine().view(); });
  EXPECT_EQ(std::ranges::find(views, "modest", &core::BackendView::name)->resources, 1) << "its registration";
  EXPECT_EQ(std::ranges::find(views, "a99", &core::BackendView::name)->resources, 0) << "there was no room for it";
}

TEST_F(Talkers, OfWhatTheNextDiscoveryFindsAreHeardThen) {
  say("found", "prod", R"({"config":{"port":1}})");
  core::Discovered one;
  one.name = "found";
  one.type = "redis";
  one.metadata["defined_in"] = "prod";
  source().discovered.backends = {one};
  line_->start(false);
  cycle();
  (void)line_->refresh(true, "found");
  const auto views = line_->on_core([&] { return line_->engine().view(); });
  const auto found = std::ranges::find(views, "found", &core::BackendView::name);
  ASSERT_NE(found, views.end());
  EXPECT_EQ(found->resources, 1) << "its registration";
}

}  // namespace
}  // namespace driftd::test
