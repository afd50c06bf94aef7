// SPDX-License-Identifier: Apache-2.0
// A backend whose password comes from a real script, with sessions that only remember what they were opened with.
#include "secrets/renewed_session.hpp"

#include <gmock/gmock.h>
#include <boost/asio/as_tuple.hpp>

#include "fake_sessions.hpp"
#include "loop.hpp"

namespace driftd::secrets {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class Programs : public testing::Test {
 protected:
  ~Programs() override {
    if (session_) loop_.wait(stopped(session_));
  }
  static Task<bool> stopped(std::shared_ptr<core::Session> session) {
    co_await session->stop();
    co_return true;
  }
  /// A script that returns another token each time, with the given lifetime.
  static std::string credential(int lifetime) {
    return R"sh(printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s",')sh"
           R"sh('"expirationTimestamp":"%s"}}\n' "$(date +%N)" "$(date -u -d '+)sh" +
           std::to_string(lifetime) + R"sh( seconds' +%Y-%m-%dT%H:%M:%SZ)")sh";
  }
  void open(const std::string& body, milliseconds refresh = milliseconds(100), milliseconds timeout = seconds(10)) {
    auto use = Scripts::use({scripts_.script("tool", body)});
    use.program.refresh = refresh;
    use.program.timeout = timeout;
    RenewalOptions options{loop_.core.get_executor(),
                           loop_.io.get_executor(),
                           &clock_,
                           std::make_shared<FakeFactory>(loop_.core.get_executor(), seen_),
                           {},
                           {}};
    options.on_program = [this](const std::string&, bool ok) { ++(ok ? good_ : bad_); };
    config::Config config;
    config.program_uses = {use};
    factory_ = with_secrets(std::move(options), config);
    factory_->on_event([this](core::SessionEvent event) {
      events_.push_back(event.what + " " + event.backend + " " + event.message);
    });
    core::SessionSpec spec;
    spec.backend = "orders";
    session_ = *factory_->open(spec);
    session_->on_change([this] { ++changes_; });
  }
  /// Returns the password that answered a call, or the error.
  std::string password() {
    const auto report = loop_.wait(session_->health());
    if (!report) return "no answer";
    return *report ? (*report)->reason : (*report).error().message;
  }
  std::string refreshed() {
    const auto outcome = loop_.wait(session_->refresh({}, {}));
    if (!outcome) return "no answer";
    return *outcome ? "ok" : (*outcome).error().message;
  }
  bool opened(std::size_t count) {
    return loop_.until([&] { return seen_.opened.size() >= count; });
  }

  Loop loop_;
  Scripts scripts_;
  const SystemClock clock_;
  Seen seen_;
  std::shared_ptr<core::SessionFactory> factory_;
  std::shared_ptr<core::Session> session_;
  std::vector<std::string> events_;
  int good_ = 0, bad_ = 0, changes_ = 0;
};

TEST_F(Programs, OtherBackendsHaveTheirSessionAsItIs) {
  open("echo canary-1");
  core::SessionSpec spec;
  spec.backend = "other";
  EXPECT_NE(dynamic_cast<FakeSession*>(factory_->open(spec)->get()), nullptr);
}

TEST_F(Programs, CallsWaitForTheFirstAnswer) {
  open("/bin/sleep 0.3; echo canary-1");
  EXPECT_EQ(session_->status().state, "starting");
  EXPECT_EQ(refreshed(), "ok");
  EXPECT_EQ(password(), "canary-1");
  EXPECT_THAT(seen_.opened, ElementsAre("canary-1"));
  EXPECT_EQ(changes_, 0) << "nothing was missed";
}

TEST_F(Programs, AnAnswerThatStaysRestartsNothing) {
  open("echo canary-1", milliseconds(20));
  ASSERT_TRUE(loop_.until([&] { return good_ >= 5; }));
  EXPECT_THAT(seen_.opened, ElementsAre("canary-1"));
}

TEST_F(Programs, AChangedAnswerOpensAnotherSessionAndTheOldOneEndsItsCalls) {
  open("echo canary-1");
  ASSERT_EQ(password(), "canary-1");
  seen_.hold = "canary-1";
  std::optional<Result<core::RefreshOutcome>> slow;
  std::optional<Status> watch;
  asio::co_spawn(loop_.core, session_->refresh({}, {}),
                 [&](std::exception_ptr, Result<core::RefreshOutcome> out) { slow = std::move(out); });
  asio::co_spawn(loop_.core, session_->watch("", {}), [&](std::exception_ptr, Status out) { watch = std::move(out); });
  scripts_.script("tool", "echo canary-2");
  ASSERT_TRUE(opened(2));
  ASSERT_TRUE(loop_.until([&] { return password() == "canary-2"; }));
  EXPECT_FALSE(slow || watch);
  EXPECT_THAT(seen_.stopped, IsEmpty());
  seen_.hold.clear();
  ASSERT_TRUE(loop_.until([&] { return slow && watch; }));
  EXPECT_TRUE(*slow && !(*slow)->unchanged) << "it ended before its session did";
  EXPECT_TRUE(*watch) << "begun anew by whoever watches, on the other one";
  EXPECT_THAT(seen_.stopped, ElementsAre("canary-1"));
  EXPECT_EQ(session_->status().restarts, 2u) << "counts go on";
  EXPECT_EQ(changes_, 0) << "nothing had failed: nothing need be read again";
}

TEST_F(Programs, WhereTheOldSecretFailedEverythingIsReadAtOnceWithTheNewOne) {
  open("echo canary-1");
  seen_.fails = true;
  EXPECT_EQ(refreshed(), "WRONGPASS");
  scripts_.script("tool", "echo canary-2");
  ASSERT_TRUE(loop_.until([&] { return changes_ == 1; }));
  EXPECT_EQ(password(), "canary-2");
}

TEST_F(Programs, OneThatFailsAtTheStartIsToldOnceAndTriedAgain) {
  open("echo canary-1; echo 'no such profile, not even canary-1' >&2; exit 4");
  EXPECT_THAT(refreshed(), HasSubstr("tool exited with 4: no such profile, not even [REDACTED]"));
  EXPECT_EQ(session_->status().state, "no secret");
  EXPECT_THAT(session_->status().last_exit, HasSubstr("setting password has no value"));
  ASSERT_TRUE(loop_.until([&] { return bad_ >= 2; }));
  ASSERT_THAT(events_, SizeIs(1));
  EXPECT_THAT(events_[0], HasSubstr("program_failed orders setting password: "));
  EXPECT_THAT(events_[0], HasSubstr("; there is no answer of it yet"));
  scripts_.script("tool", "echo canary-2");
  ASSERT_TRUE(loop_.until([&] { return changes_ == 1; })) << "what was missed is read at once";
  EXPECT_EQ(password(), "canary-2");
  EXPECT_THAT(events_[0], Not(HasSubstr("canary")));
}

TEST_F(Programs, OneThatFailsLaterLeavesItsAnswerInUse) {
  open("echo canary-1");
  ASSERT_EQ(password(), "canary-1");
  scripts_.script("tool", "exit 1");
  ASSERT_TRUE(loop_.until([&] { return bad_ >= 2; }));
  EXPECT_EQ(password(), "canary-1");
  ASSERT_THAT(events_, SizeIs(1));
  EXPECT_THAT(events_[0], HasSubstr("stays in use"));
  scripts_.script("tool", "echo canary-1");
  const int before = good_;
  ASSERT_TRUE(loop_.until([&] { return good_ > before; }));
  EXPECT_THAT(seen_.opened, ElementsAre("canary-1"));
}

TEST_F(Programs, AFirstSessionThatCannotBeOpenedIsTriedAgainInTheNextCycle) {
  seen_.unopened = "canary-1";
  open("echo canary-1", seconds(3600));
  EXPECT_EQ(refreshed(), "no plugin for it");
  EXPECT_EQ(session_->status().last_exit, "no plugin for it");
  seen_.unopened.clear();
  const auto info = loop_.wait(session_->info());
  EXPECT_TRUE(info && *info);
  EXPECT_EQ(password(), "canary-1");
  EXPECT_EQ(changes_, 1) << "what was missed is read at once";
}

TEST_F(Programs, ATokenThatExpiresIsRenewedBefore) {
  // `date` rounds it down to 11 s at least; a slow machine has the last 15 % for a renewal
  open(credential(12), seconds(3600));
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(opened(2)) << "not after an hour";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(12) * test::kPatience);
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(Programs, ATokenThatExpiresUnrenewedIsUsedNoLonger) {
  open(credential(6), seconds(3600));
  EXPECT_EQ(refreshed(), "ok");
  scripts_.script("tool", "echo 'cannot reach sts' >&2; exit 255");
  ASSERT_TRUE(loop_.until([&] { return session_->status().state == "no secret"; }));
  EXPECT_THAT(refreshed(), HasSubstr("exited with 255: cannot reach sts"));
  // a slow machine
  EXPECT_THAT(events_.front(), testing::AnyOf(HasSubstr("stays in use until 20"), HasSubstr(" expired")));
  EXPECT_THAT(events_.back(), HasSubstr(" expired"));
  EXPECT_LE(events_.size(), 2u);
  ASSERT_TRUE(loop_.until([&] { return seen_.stopped.size() == 1; }));
}

TEST_F(Programs, OneThatHangsIsAFailureAfterItsTimeoutAndDelaysNoStop) {
  open("exec /bin/sleep 1000", milliseconds(100), milliseconds(400));
  EXPECT_THAT(refreshed(), HasSubstr("did not end within 0.4 s: killed"));
  scripts_.script("tool", "exec /bin/sleep 1000");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(loop_.wait(stopped(session_)).has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5) * test::kPatience);
  EXPECT_EQ(session_->status().state, "stopped");
}

TEST_F(Programs, ASessionThatNobodyStoppedLeavesNothingToDo) {
  open("echo canary-1");
  ASSERT_EQ(password(), "canary-1");
  session_.reset();
  loop_.core.restart();
  EXPECT_TRUE(loop_.until([&] { return loop_.core.poll_one() == 0 && loop_.core.stopped(); }, seconds(5)));
}

}  // namespace
}  // namespace driftd::secrets
