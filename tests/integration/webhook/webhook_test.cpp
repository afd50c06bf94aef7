// SPDX-License-Identifier: Apache-2.0
// The webhook sink against a real HTTP receiver, and the file sink on a real file. Each has a real relay before it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <atomic>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/log.hpp"
#include "hook.hpp"
#include "sinks/file/file_sink.hpp"
#include "sinks/webhook/sign.hpp"
#include "sinks/webhook/webhook_sink.hpp"
#include "support/http_receiver.hpp"
#include "support/relay_runner.hpp"
#include "support/sink_events.hpp"

namespace {

constexpr const char* kHangingHost = "hangs.invalid";
/// The state of the resolver below: it does not answer for kHangingHost before `may_answer` is true.
struct {
  std::atomic<bool> asked = false, may_answer = false;
} resolver;

}  // namespace

/// Replaces the C library's function in this process, so that libcurl's resolver thread calls it.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** out) {
  if (name != nullptr && std::string_view(name) == kHangingHost) {
    resolver.asked = true;
    resolver.may_answer.wait(false);
    return EAI_AGAIN;
  }
  static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(name, service, hints, out);
}

namespace driftd::test {
namespace {

RelayRunner::MakeSink webhook(const std::string& url, bool loopback = true,
                              std::chrono::milliseconds total_timeout = std::chrono::seconds(20)) {
  sinks::WebhookSettings settings;
  settings.total_timeout = total_timeout;
  settings.url = url;
  settings.secrets = {"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "the-old-key-that-is-rotated-out"};
  settings.allow_http_loopback = loopback;
  return [settings](auto core, auto io, const Clock& clock) {
    return sinks::open_webhook("ops", settings, core, io, clock);
  };
}

TEST(WebhookSinkTest, AnEventArrivesAsSignedStructuredCloudEvent) {
  HttpReceiver receiver;
  RelayRunner runner(webhook(receiver.url()));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().last_error;
  const auto got = receiver.received().at(0);
  EXPECT_EQ(got.headers.at("content-type"), "application/cloudevents+json; charset=UTF-8");
  EXPECT_EQ(nlohmann::json::parse(got.body)["id"], got.headers.at("webhook-id"));
  const std::vector<std::string> keys = {"0123456789abcdef01234567", "the-old-key-that-is-rotated-out"};
  EXPECT_EQ(got.headers.at("webhook-signature"),
            sinks::sign(keys, got.headers.at("webhook-id"), std::stoll(got.headers.at("webhook-timestamp")), got.body));
}

TEST(WebhookSinkTest, EachPublishedEventIsALineOfTheLogAtLevelDebug) {
  const auto log_of = [](const std::string& level) {
    log::configure({"info", "text", {{"delivery", level}}});
    testing::internal::CaptureStderr();
    {
      HttpReceiver receiver;
      RelayRunner runner(webhook(receiver.url()));
      for (int i = 1; i <= 2; ++i) runner.add(sample_stored(i));
      EXPECT_TRUE(eventually([&] { return runner.view().delivered == 2; })) << runner.view().last_error;
    }
    return testing::internal::GetCapturedStderr();
  };
  const std::string lines = log_of("debug");
  for (int i = 1; i <= 2; ++i) {
    const std::string line =
        "sink s: published event " + sample_stored(i).stamp.id + " backend.orders-kafka.config.updated\n";
    EXPECT_NE(lines.find(line), std::string::npos) << lines;
  }
  EXPECT_EQ(log_of("info").find("published event"), std::string::npos);
}

TEST(WebhookSinkTest, AReceiverThatIsDownGetsEveryEventWhenItIsBack) {
  HttpReceiver receiver;
  RelayRunner runner(webhook(receiver.url()));
  receiver.kill();
  for (int i = 1; i <= 40; ++i) runner.add(sample_stored(i));
  ASSERT_TRUE(eventually([&] { return runner.view().state.rfind("circuit open", 0) == 0; }));
  receiver.start();
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 40; })) << runner.view().last_error;
  std::set<std::string> ids;
  for (const auto& request : receiver.received()) ids.insert(request.headers.at("webhook-id"));
  EXPECT_EQ(ids.size(), 40U);
}

TEST(WebhookSinkTest, ARedirectIsNotFollowed) {
  HttpReceiver receiver({HttpScripted{302, {{"Location", "/elsewhere"}}}});
  RelayRunner runner(webhook(receiver.url()));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().last_error.rfind("HTTP 302 from ops (event ", 0) == 0; }));
  for (const auto& request : receiver.received()) EXPECT_EQ(request.path, "/hook");
}

TEST(WebhookSinkTest, OverloadIsWaitedOutAsTheReceiverAsks) {
  HttpReceiver receiver({HttpScripted{429, {{"Retry-After", "2"}}}, HttpScripted{200}});
  RelayRunner runner(webhook(receiver.url()));
  const auto begin = std::chrono::steady_clock::now();
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().last_error.rfind("HTTP 429 from ops (event ", 0) == 0; }));
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().last_error;
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  ASSERT_EQ(receiver.received().size(), 2U);
  for (const auto& request : receiver.received()) {
    EXPECT_EQ(request.headers.at("webhook-id"), receiver.received()[0].headers.at("webhook-id"));
  }
}

TEST(WebhookSinkTest, OneEventThatFailsHoldsBackOnlyItsOwnResource) {
  HttpReceiver receiver({HttpScripted{500}, HttpScripted{200}});
  RelayRunner runner(webhook(receiver.url()));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().last_error.rfind("HTTP 500 from ops (event ", 0) == 0; }));
  runner.add(sample_stored(2));
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().last_error;
  EXPECT_EQ(receiver.received().at(1).headers.at("webhook-id"), sample_stored(2).stamp.id);
  EXPECT_EQ(runner.view().dead, 0);
  EXPECT_TRUE(eventually([&] { return runner.view().delivered == 2; }))
      << "the second attempt of the failed event comes 5 s later: " << runner.view().last_error;
}

/// The parameter is the status with which one event is always refused. 0: it is never answered.
class Poison : public ::testing::TestWithParam<int> {};

TEST_P(Poison, OneEventThatIsAlwaysRefusedStopsNoOther) {
  const bool hangs = GetParam() == 0;
  HttpScripted refusal{hangs ? 200 : GetParam(), {}, hangs ? 60'000 : 0};
  refusal.only_for = sample_stored(1).stamp.id;
  HttpReceiver receiver({refusal, HttpScripted{200}});
  RelayRunner runner(webhook(receiver.url(), true, std::chrono::milliseconds(500)));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return !runner.view().last_error.empty(); }));
  for (int i = 2; i <= 101; ++i) runner.add(sample_stored(i));
  EXPECT_TRUE(eventually([&] { return runner.view().delivered == 100; }))
      << runner.view().state << " " << runner.view().last_error;
  EXPECT_EQ(runner.view().dead, 0);
  const auto view = runner.view();
  EXPECT_NE(view.last_error.find(sample_stored(1).stamp.id), std::string::npos) << view.last_error;
}

INSTANTIATE_TEST_SUITE_P(Answers, Poison, ::testing::Values(0, 401, 403, 404, 405, 429, 500, 502, 503, 504),
                         [](const auto& status) {
                           return status.param == 0 ? "TimeOut" : "Http" + std::to_string(status.param);
                         });

/// More events wait behind one resource that is always refused than the runner of a sink fetches ahead of its cursor.
TEST(WebhookSinkTest, ThousandsBehindOneThatIsRefusedHoldBackNobodyElse) {
  constexpr int kWaiting = 10'500, kOthers = 50;
  HttpScripted refusal{500};
  refusal.only_for = "topic/sick";
  HttpReceiver receiver({refusal, HttpScripted{200}});
  RelayRunner runner(webhook(receiver.url()));
  core::BackendEvent sick = sample_event(0);
  sick.resource = core::ResourceId{"topic", "sick"};
  const auto add_sick = [&](std::int64_t n) {
    const std::string id = "abcdefghij0123456789-" + std::to_string(2'000'000'000'000'000 + n);
    runner.add(proto::to_stored_event(sick, {id, n, static_cast<std::uint64_t>(n), 1'763'700'000'000'000'000}));
  };
  add_sick(1);
  ASSERT_TRUE(eventually([&] { return runner.view().retrying == 1; })) << runner.view().last_error;
  for (int n = 2; n <= kWaiting; ++n) add_sick(n);
  ASSERT_TRUE(eventually([&] { return runner.view().waiting == kWaiting; })) << runner.view().waiting;
  for (int n = 1; n <= kOthers; ++n) runner.add(sample_stored(kWaiting + n));
  EXPECT_TRUE(eventually([&] { return runner.view().delivered == kOthers; })) << runner.view().state;
  EXPECT_EQ(runner.view().waiting, kWaiting);
  EXPECT_EQ(runner.view().missed_wakeups, 0U);
}

TEST(WebhookSinkTest, AnAnswerThatNeverComesIsCutOffAndTriedAgain) {
  HttpReceiver receiver({HttpScripted{200, {}, 60'000}, HttpScripted{200}});
  RelayRunner runner(webhook(receiver.url(), true, std::chrono::milliseconds(300)));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return !runner.view().last_error.empty(); }));
  EXPECT_NE(runner.view().last_error.find("imed out"), std::string::npos) << runner.view().last_error;
  EXPECT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().last_error;
}

TEST(WebhookSinkTest, AnEndlessAnswerDoesNotFillTheMemory) {
  HttpReceiver receiver({HttpScripted{200, {}, 0, 64 << 20}});
  RelayRunner runner(webhook(receiver.url()));
  const auto before = peak_kilobytes();
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 1 || !runner.view().last_error.empty(); }));
  EXPECT_LT(peak_kilobytes() - before, 16 << 10) << runner.view().last_error;
}

TEST(WebhookSinkTest, AnEndlessHeadIsNoAnswer) {
  HttpScripted endless{200};
  for (int i = 0; i < 2'000; ++i) endless.headers["x-" + std::to_string(i)] = std::string(100, 'x');
  HttpReceiver receiver({endless, HttpScripted{200}});
  RelayRunner runner(webhook(receiver.url()));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 1 || !runner.view().last_error.empty(); }));
  EXPECT_NE(runner.view().last_error.find("the head of the answer has more than 64 KiB"), std::string::npos)
      << runner.view().last_error;
  EXPECT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().state;
}

TEST(WebhookSinkTest, AWaitBelowZeroIsNone) {
  HttpReceiver receiver({HttpScripted{503, {{"Retry-After", "-9223372036854775807"}}}, HttpScripted{200}});
  RelayRunner runner(webhook(receiver.url()));
  runner.add(sample_stored(1));
  EXPECT_TRUE(eventually([&] { return runner.view().delivered == 1; }, std::chrono::seconds(30)))
      << runner.view().last_error;
}

TEST(WebhookSinkTest, AResolverThatHangsStopsNothingButItsSink) {
  asio::io_context core;
  asio::thread_pool io(1);
  sinks::WebhookSettings settings;
  settings.url = "https://" + std::string(kHangingHost) + "/hook";
  const auto clock = SystemClock();
  auto sink = sinks::open_webhook("ops", settings, core.get_executor(), io.get_executor(), clock);
  ASSERT_TRUE(sink) << sink.error().message;
  const auto run_until = [&](const std::function<bool()>& done) {
    return eventually([&] {
      core.restart();
      core.poll();
      return done();
    });
  };
  bool started = false, attempted = false, stopped = false;
  asio::co_spawn(core, (*sink)->start(), [&](std::exception_ptr, Status) { started = true; });
  ASSERT_TRUE(run_until([&] { return started; }));
  asio::co_spawn(core, (*sink)->send(sample_stored(1)), [&](std::exception_ptr, core::Attempt) { attempted = true; });
  ASSERT_TRUE(run_until([] { return resolver.asked.load(); }));
  asio::co_spawn(core, (*sink)->stop(), [&](std::exception_ptr) { stopped = true; });
  core.restart();
  core.poll();  // returns although the look-up of the name still hangs
  EXPECT_FALSE(stopped);
  resolver.may_answer = true;
  resolver.may_answer.notify_all();
  EXPECT_TRUE(run_until([&] { return stopped && attempted; }));
}

TEST(WebhookSinkTest, AReceiverThatSaysGoneIsNotCalledAgain) {
  HttpReceiver receiver({HttpScripted{410}});
  RelayRunner runner(webhook(receiver.url()));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().state.rfind("disabled", 0) == 0; })) << runner.view().state;
  runner.add(sample_stored(2));
  EXPECT_TRUE(eventually([&] { return runner.view().waiting == 2; })) << runner.view().waiting;
  EXPECT_EQ(receiver.received().size(), 1U);
}

TEST(WebhookSinkTest, ALoopbackAddressBehindHttpsIsRefusedBeforeAnyByteIsSent) {
  HttpReceiver receiver;
  RelayRunner runner(webhook("https://127.0.0.1:" + std::to_string(receiver.port()) + "/hook", false));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().last_error.find("is loopback") != std::string::npos; }))
      << runner.view().last_error;
  EXPECT_TRUE(receiver.received().empty());
}

TEST(FileSinkTest, AFileThatSomebodyRemovesOrRenamesIsMadeAgainWithWhatItLost) {
  const TempDir dir;
  const std::string path = dir.file("events.jsonl");
  sinks::FileSettings settings{path};
  RelayRunner runner([settings](auto, auto io, const Clock&) -> Result<std::unique_ptr<core::Sink>> {
    return sinks::open_file("log", settings, io);
  });
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().low_water == 1; }));
  std::filesystem::rename(path, dir.file("moved.jsonl"));
  runner.add(sample_stored(2));
  EXPECT_TRUE(eventually([&] { return runner.view().low_water == 2; })) << runner.view().last_error;
  EXPECT_NE(read_file(path).find("1000000000000002"), std::string::npos);
  std::filesystem::remove(path);
  runner.add(sample_stored(3));
  EXPECT_TRUE(eventually([&] { return runner.view().low_water == 3; })) << runner.view().last_error;
  EXPECT_NE(read_file(path).find("1000000000000003"), std::string::npos);
}

TEST(FileSinkTest, ATornLastLineIsCutAndEveryLineParses) {
  TempDir dir;
  const std::string path = dir.write("events.jsonl", "{\"id\":\"old\"}\n{\"id\":\"to");
  sinks::FileSettings settings{path};
  RelayRunner runner([settings](auto, auto io, const Clock&) -> Result<std::unique_ptr<core::Sink>> {
    return sinks::open_file("log", settings, io);
  });
  for (int i = 1; i <= 200; ++i) runner.add(sample_stored(i));
  ASSERT_TRUE(eventually([&] { return runner.view().low_water == 200; })) << runner.view().last_error;
  std::istringstream lines(read_file(path));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  EXPECT_EQ(count, 201);
}

}  // namespace
}  // namespace driftd::test
