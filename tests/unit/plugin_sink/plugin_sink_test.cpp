// SPDX-License-Identifier: Apache-2.0
// Batches, verdicts, suspects and flushes of a plugin's sink, without a process.
#include <gmock/gmock.h>

#include "ipc/sink_info.hpp"
#include "sinks/plugin/batches.hpp"
#include "unit/plugin_sink/fake_plugin.hpp"

namespace driftd::test {
namespace {

using core::Attempt;
using core::DeliverEnd;
using How = DeliverEnd::How;
using Outcome = Attempt::Outcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

DeliverEnd deliver_all(const core::DeliverRequest& request, const core::SettledHandler& settled) {
  for (std::size_t i = 0; i < request.events.size(); ++i) settled({i, {Outcome::delivered, {}, 0}, 1});
  return {How::returned, Status{}};
}

class PluginSink : public ::testing::Test {
 protected:
  void SetUp() override {
    session_->deliver_with = deliver_all;
    sinks::PluginSettings settings;
    settings.plugin = "fake";
    sink_ = std::move(*sinks::open_plugin("s", settings, sessions_, &session_->described(), core_.get_executor()));
    run(sink_->start(), [](const Status& started) { ASSERT_TRUE(started); });
  }
  template <class T, class F>
  void run(Task<T> task, F check) {
    asio::co_spawn(core_, std::move(task), [check](std::exception_ptr thrown, T value) {
      if (thrown) std::rethrow_exception(thrown);
      check(value);
    });
    core_.restart();
    core_.run();
  }
  /// Starts to send the events numbered `from` up to `to`, and returns what came of each once nothing is under way.
  std::map<int, Attempt> send(int from, int to) {
    const auto out = std::make_shared<std::map<int, Attempt>>();
    for (int n = from; n <= to; ++n) {
      asio::co_spawn(core_, sink_->send(sample_stored(n)), [out, n](std::exception_ptr thrown, Attempt attempt) {
        if (thrown) std::rethrow_exception(thrown);
        (*out)[n] = std::move(attempt);
      });
    }
    core_.restart();
    core_.run();
    return *out;
  }
  std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> out;
    for (const auto& batch : session_->batches) out.push_back(batch.size());
    return out;
  }

  asio::io_context core_;
  const std::shared_ptr<FakeSession> session_ = std::make_shared<FakeSession>(core_.get_executor());
  const std::shared_ptr<FakeSessions> sessions_ = std::make_shared<FakeSessions>(session_);
  std::unique_ptr<core::Sink> sink_;
};

TEST_F(PluginSink, PutsWhatWaitsIntoBatchesOfTheDeclaredSize) {
  session_->answers_later = true;
  const auto attempts = send(1, 10);
  EXPECT_THAT(sizes(), ElementsAre(4u, 4u, 2u));
  EXPECT_EQ(session_->most_running, 1u);
  for (const auto& [n, attempt] : attempts) EXPECT_EQ(attempt.outcome, Outcome::delivered) << n;
}

TEST_F(PluginSink, MakesAsManyCallsAtOnceAsDeclared) {
  session_->described().concurrency = 2;
  run(sink_->start(), [](const Status&) {});
  session_->answers_later = true;
  send(1, 20);
  EXPECT_EQ(session_->most_running, 2u);
}

TEST_F(PluginSink, SendsAnEventThatIsLargerThanABatchAlone) {
  session_->described().sink->max_bytes = 1;
  run(sink_->start(), [](const Status&) {});
  EXPECT_THAT(send(1, 3), SizeIs(3));
  EXPECT_THAT(sizes(), ElementsAre(1u, 1u, 1u));
}

TEST_F(PluginSink, LooksAtAnUpgradedPluginUntilItCanBeDescribed) {
  session_->described().sink->content_type = core::kProtobuf;
  session_->hidden = true;
  session_->changed();
  EXPECT_EQ(send(1, 1).at(1).outcome, Outcome::retry_sink) << "what it takes now is not known";
  EXPECT_THAT(session_->batches, SizeIs(0));
  session_->hidden = false;
  std::string got;
  session_->deliver_with = [&](const core::DeliverRequest& request, const core::SettledHandler& settled) {
    got = request.events.front().content_type;
    return deliver_all(request, settled);
  };
  EXPECT_EQ(send(1, 1).at(1).outcome, Outcome::delivered);
  EXPECT_EQ(got, core::kProtobuf);
}

TEST_F(PluginSink, TakesNoEventForDeliveredThatHasNoVerdict) {
  const std::vector<std::pair<DeliverEnd, Outcome>> ends = {
      {{How::returned, Status{}}, Outcome::retry_event},
      {{How::returned, fail(Code::internal, "x")}, Outcome::retry_event},
      {{How::returned, fail(Code::invalid, "x")}, Outcome::retry_event},
      {{How::returned, fail(Code::unavailable, "x")}, Outcome::retry_sink},
      {{How::returned, fail(Code::unauthenticated, "x")}, Outcome::retry_sink},
      {{How::returned, fail(Code::denied, "x")}, Outcome::retry_sink},
      {{How::returned, fail(Code::throttled, "x")}, Outcome::retry_sink},
      {{How::returned, fail(Code::deadline, "x")}, Outcome::refused},
      {{How::not_begun, fail(Code::unavailable, "x")}, Outcome::retry_sink},
      {{How::lost, fail(Code::unavailable, "x")}, Outcome::retry_sink}};
  for (const auto& [end, outcome] : ends) {
    session_->deliver_with = [&](const auto&, const core::SettledHandler& settled) {
      settled({0, {Outcome::delivered, {}, 0}, 1});
      return end;
    };
    const auto attempts = send(1, 2);
    EXPECT_EQ(attempts.at(1).outcome, Outcome::delivered);
    EXPECT_EQ(attempts.at(2).outcome, outcome);
    session_->deliver_with = deliver_all;  // no suspect is left for the next
    send(1, 2);
  }
}

TEST_F(PluginSink, TriesNotEachWaitingEventWhenTheEndpointFails) {
  session_->answers_later = true;
  session_->deliver_with = [](const auto&, const auto&) {
    return DeliverEnd{How::returned, fail(Code::unavailable, "connection refused")};
  };
  const auto attempts = send(1, 20);
  EXPECT_THAT(sizes(), ElementsAre(4u));
  EXPECT_THAT(attempts, SizeIs(20));
  for (const auto& [n, attempt] : attempts) EXPECT_EQ(attempt.outcome, Outcome::retry_sink) << n;
}

TEST_F(PluginSink, SendsAloneWhatWasUnderWayWhenAWorkerEnded) {
  session_->described().concurrency = 4;
  run(sink_->start(), [](const Status&) {});
  session_->deliver_with = [](const auto&, const auto&) { return DeliverEnd{How::lost, fail(Code::unavailable, "x")}; };
  send(1, 3);
  session_->batches.clear();
  session_->most_running = 0;
  session_->answers_later = true;
  session_->deliver_with = deliver_all;
  send(1, 6);
  EXPECT_THAT(sizes(), ElementsAre(1u, 1u, 1u, 3u));
  EXPECT_EQ(session_->most_running, 1u);
}

TEST_F(PluginSink, GivesUpAnEventThatEndsThreeWorkersAloneWhileOthersAreDelivered) {
  const std::string poison = sample_stored(1).stamp.id;
  session_->deliver_with = [&](const core::DeliverRequest& request, const core::SettledHandler& settled) {
    const bool ends = std::any_of(request.events.begin(), request.events.end(),
                                  [&](const auto& event) { return event.id == poison; });
    return ends ? DeliverEnd{How::lost, fail(Code::unavailable, "killed")} : deliver_all(request, settled);
  };
  EXPECT_EQ(send(1, 2).at(1).outcome, Outcome::retry_sink);  // in a batch: either may be the cause
  EXPECT_EQ(send(2, 2).at(2).outcome, Outcome::delivered);
  for (int alone = 1; alone <= 2; ++alone) {
    EXPECT_EQ(send(1, 1).at(1).outcome, Outcome::retry_sink) << alone;
    EXPECT_EQ(send(2 + alone, 2 + alone).at(2 + alone).outcome, Outcome::delivered);
  }
  const Attempt last = send(1, 1).at(1);
  EXPECT_EQ(last.outcome, Outcome::permanent);
  EXPECT_THAT(last.detail, HasSubstr("killed"));
}

TEST_F(PluginSink, BlamesNoEventIfNothingElseIsDelivered) {
  session_->deliver_with = [](const auto&, const auto&) { return DeliverEnd{How::lost, fail(Code::unavailable, "x")}; };
  for (int i = 0; i < 10; ++i) EXPECT_EQ(send(1, 1).at(1).outcome, Outcome::retry_sink);
}

TEST_F(PluginSink, FlushFailsIfTheWorkerThatDeliveredIsNotTheOneThatFlushes) {
  send(1, 2);
  session_->flushing_worker = 2;
  run(sink_->flush(), [](const Status& flushed) {
    ASSERT_FALSE(flushed);
    EXPECT_THAT(flushed.error().message, HasSubstr("ended before it had flushed"));
  });
  session_->flushing_worker = 1;
  send(1, 2);
  run(sink_->flush(), [](const Status& flushed) { EXPECT_TRUE(flushed); });
}

TEST_F(PluginSink, GivesThePluginItsNameAndWaitsForIt) {
  EXPECT_EQ(sessions_->opened.sink, "s");
  EXPECT_EQ(sessions_->opened.backend, "sink/s");
  EXPECT_TRUE(sessions_->opened.wait_for_plugin);
}

TEST_F(PluginSink, RetriesAsThePluginSaysUnlessTheSettingsSayOtherwise) {
  const auto forever = [&](sinks::PluginRetry retry, const core::ProviderInfo* known) {
    sinks::PluginSettings settings;
    settings.plugin = "fake";
    settings.retry = retry;
    return (*sinks::open_plugin("s", settings, sessions_, known, core_.get_executor()))->policy().forever;
  };
  session_->described().sink->forever = false;
  EXPECT_FALSE(forever(sinks::PluginRetry::as_plugin, &session_->described()));
  EXPECT_TRUE(forever(sinks::PluginRetry::forever, &session_->described()));
  EXPECT_TRUE(forever(sinks::PluginRetry::as_plugin, nullptr));
  EXPECT_FALSE(forever(sinks::PluginRetry::schedule, nullptr));
}

TEST(SinkInfo, TakesTheFirstBodyThatThisAgentCanProduce) {
  const auto info = ipc::parse_sink_info(
      R"({"bodies": ["application/avro", "application/protobuf"], "batch": {"events": 10}, "retry": "schedule"})", "f");
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->content_type, core::kProtobuf);
  EXPECT_EQ(info->max_events, 10u);
  EXPECT_FALSE(info->forever);
  EXPECT_FALSE(info->has_flush);
}

TEST(SinkInfo, NamesWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({})", "`bodies` must be a list of 1 to 32 content types"},
      {R"({"bodies": ["application/avro"]})", "none of its `bodies`"},
      {R"({"bodies": ["application/protobuf"], "batch": {"events": 0}})", "`batch.events` must be 1 to 256, found 0"},
      {R"({"bodies": ["application/protobuf"], "batch": 3})", "`batch` must be an object"},
      {R"({"bodies": ["application/protobuf"], "retry": "never"})", "`retry` must be \"forever\" or \"schedule\""},
      {R"({"bodies": ["application/protobuf"], "flush": 1})", "`flush` must be true or false, found 1"}};
  for (const auto& [describe, expected] : wrong) {
    const auto info = ipc::parse_sink_info(describe, "f.so");
    ASSERT_FALSE(info) << describe;
    EXPECT_THAT(info.error().message, HasSubstr(expected));
  }
}

TEST_F(PluginSink, SaysUntilWhenItsWorkerIsParkedAndHowToStartItBefore) {
  session_->worker.state = "parked";
  session_->worker.parked_until_ns = 1'700'000'000'000'000'000;
  EXPECT_EQ(sink_->describe(),
            "fake 1: worker parked until 2023-11-14T22:13:20.000Z, or `driftd plugin resume sink/s`");
}

}  // namespace
}  // namespace driftd::test
