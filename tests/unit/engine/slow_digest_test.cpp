// SPDX-License-Identifier: Apache-2.0
// A store with slow digests (ADR 0014), each of which takes some 50 ms. Only the backend that has them waits, no event
// reports them, and nothing stored beside them is faster to guess.
#include <algorithm>
#include <chrono>
#include <future>

#include "base/digest.hpp"
#include "base/slow_hash.hpp"
#include "on_the_store.hpp"
#include "store/rotate.hpp"

namespace driftd::test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using SteadyTime = std::chrono::steady_clock;

class SlowEngine : public EngineOnTheStore {
 protected:
  /// What a worker would send of a secret: a digest, and a value in clear.
  std::string secret(const std::string& value) const {
    return R"({"p":{"$hmac":")" + line_->store().key().worker.id + ":1:" + to_hex(sha256(value)) +
           R"("},"partitions":3})";
  }
  void secrets(int count, const std::string& of) {
    for (int i = 0; i < count; ++i) line_->world->resources[thing(i)] = secret(of + std::to_string(i));
  }
  void declare(int number, const std::string& body) {
    line_->source->kinds = {"instance"};
    line_->source->declared_kinds = {{"b", "thing"}};
    line_->source->declared[{"b", thing(number)}] = body;
  }
  void stop() {
    world_ = *line_->world;
    source_ = *line_->source;
    line_.reset();
  }
  void again() {
    if (line_) stop();
    line_ = std::make_unique<EngineLine>(dir_);
    *line_->world = world_;
    *line_->source = source_;
  }
  void put_slow_layer() {
    const SystemClock clock;
    store::Settings settings;
    settings.data_dir = dir_.path() / "data";
    const auto done = store::rotate(std::move(settings), {}, clock, core::LayerKind::slow);
    ASSERT_TRUE(done) << done.error().message;
  }
  /// Makes a baseline, then prepares a process over the same world with slow digests, without starting it.
  void begin_slow() {
    baseline();
    stop();
    ASSERT_NO_FATAL_FAILURE(put_slow_layer());
    again();
  }
  std::vector<core::IndexEntry> index() {
    const std::string uid = line_->wait(line_->store().backends()).value().front().uid;
    return line_->wait(line_->store().index(uid)).value();
  }
  struct Waited {
    SteadyTime::duration longest{}, whole{};
  };
  /// Returns the longest time that the core thread kept others waiting while `work` ran on another thread.
  template <class F>
  Waited waited_during(F work) {
    const auto began = SteadyTime::now();
    auto done = std::async(std::launch::async, std::move(work));
    Waited out;
    while (done.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready) {
      const auto asked = SteadyTime::now();
      line_->on_core([] { return 0; });
      out.longest = std::max(out.longest, SteadyTime::now() - asked);
    }
    out.whole = SteadyTime::now() - began;
    return out;
  }
  static void expect_answered(const Waited& waited) {
    using Ms = std::chrono::milliseconds;
    const auto ms = [](auto time) { return std::chrono::duration_cast<Ms>(time).count(); };
    testing::Test::RecordProperty("longest_ms", std::to_string(ms(waited.longest)));
    testing::Test::RecordProperty("whole_ms", std::to_string(ms(waited.whole)));
    EXPECT_GT(ms(waited.whole), 500) << "digests were made";
    EXPECT_LT(ms(waited.longest) * 5, ms(waited.whole))
        << "somebody waited " << ms(waited.longest) << " ms of " << ms(waited.whole);
  }

  ScriptedWorld world_, source_;
};

TEST_F(SlowEngine, CoreThreadAnswersWhileTwoHundredNewDigestsAreMade) {
  ASSERT_NO_FATAL_FAILURE(begin_slow());
  secrets(200, "new ");
  line_->start(false);
  expect_answered(waited_during([this] { refresh(); }));
  EXPECT_TRUE(report_.complete()) << reasons();
  const auto began = SteadyTime::now();
  refresh();
  EXPECT_EQ(report_.settled, 200U);
  EXPECT_LT(SteadyTime::now() - began, std::chrono::seconds(1)) << "what is unchanged costs nothing";
}

TEST_F(SlowEngine, StopWaitsForOneRecordAndNotForThePage) {
  ASSERT_NO_FATAL_FAILURE(begin_slow());
  secrets(200, "given up ");
  line_->start(false);
  const auto began_one = SteadyTime::now();
  ASSERT_TRUE(slow_hash("as long as", "one takes"));
  const auto one = SteadyTime::now() - began_one;
  auto done = std::async(std::launch::async, [line = line_.get()] { return line->refresh().complete(); });
  EXPECT_EQ(done.wait_for(one * 5), std::future_status::timeout) << "it is under way";
  const auto began = SteadyTime::now();
  line_.reset();
  EXPECT_LT(SteadyTime::now() - began, one * 100) << "and not 200 digests";
  EXPECT_FALSE(done.get());
}

TEST_F(SlowEngine, CoreThreadAnswersWhileDeclarationsAreMade) {
  declare(1, R"({"partitions":3})");
  ASSERT_NO_FATAL_FAILURE(begin_slow());
  for (int i = 0; i < 60; ++i) declare(i, secret("declared " + std::to_string(i)));
  line_->start(false);
  expect_answered(waited_during([this] { line_->refresh(true, "source"); }));
}

TEST_F(SlowEngine, CoreThreadAnswersWhileTheProviderIsAskedForItsWord) {
  secrets(60, "old ");
  ASSERT_NO_FATAL_FAILURE(begin_slow());
  line_->world->diffs = true;
  secrets(60, "asked ");
  line_->start(false);
  expect_answered(waited_during([this] { refresh(); }));
}

TEST_F(SlowEngine, ChangeMadeMeanwhileIsToldAndNothingElse) {
  secrets(12, "steady ");
  ASSERT_NO_FATAL_FAILURE(begin_slow());
  line_->world->resources[thing(3)] = secret("moved");
  line_->start(false);
  const auto before = line_->events().size();
  refresh();
  ASSERT_TRUE(report_.complete()) << reasons();
  const auto moved = all(core::Operation::changed);
  ASSERT_THAT(moved, SizeIs(1));
  EXPECT_EQ(moved[0].resource, thing(3));
  EXPECT_EQ(moved[0].changes[0].path, "p");
  refresh();
  EXPECT_EQ(report_.settled, 30U);
  EXPECT_THAT(all(core::Operation::changed), SizeIs(1));
  EXPECT_GT(line_->events().size(), before);
}

/// The worker computes the digest of a record in no time. In the store it would be a way around the slow digests.
TEST_F(SlowEngine, StoreHoldsNoDigestOfARecordWithSecrets) {
  secrets(5, "kept ");
  ASSERT_NO_FATAL_FAILURE(begin_slow());
  line_->start(false);
  refresh();
  refresh();
  EXPECT_EQ(report_.settled, 30U) << "this process knows them";
  std::size_t with = 0;
  for (const auto& entry : index()) {
    if (entry.id.kind != "thing") continue;
    const bool is_secret = std::stoi(entry.id.id.substr(1)) < 5;
    EXPECT_EQ(entry.digest == Digest{}, is_secret) << entry.id.id;
    with += is_secret ? 1 : 0;
  }
  EXPECT_EQ(with, 5U);
  const auto published = line_->events().size();
  again();
  line_->start(false);
  refresh();
  EXPECT_EQ(report_.settled, 25U) << "the next one judges those once more";
  refresh();
  EXPECT_EQ(report_.settled, 30U);
  EXPECT_EQ(line_->events().size(), published);
}

TEST_F(SlowEngine, DeclarationIsKeptByItsSealedBodyAndItsChangeIsJudged) {
  secrets(5, "declared ");
  declare(1, secret("declared 1"));
  line_->start(false);
  line_->refresh(true, "source");
  refresh();
  ASSERT_THAT(line_->drifts(), IsEmpty());
  stop();
  ASSERT_NO_FATAL_FAILURE(put_slow_layer());
  again();
  line_->start(false);
  line_->refresh(true, "source");
  refresh();
  refresh();
  EXPECT_EQ(report_.settled, 30U);
  const auto declared = [this] { return line_->wait(line_->store().declarations("b", {thing(1)})).value().at(0); };
  EXPECT_NE(declared().digest, Digest{});
  EXPECT_EQ(declared().digest, digest(0, {declared().body}));
  declare(1, secret("another one"));
  line_->refresh(true, "source");
  refresh();
  EXPECT_THAT(line_->drifts(), SizeIs(1)) << "the declared value is not the one that is there";
  declare(1, secret("declared 1"));
  line_->refresh(true, "source");
  refresh();
  EXPECT_THAT(line_->drifts(), IsEmpty());
}

}  // namespace
}  // namespace driftd::test
