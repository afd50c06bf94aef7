// SPDX-License-Identifier: Apache-2.0
// A plugin file is replaced while a session runs on it: when the new version is used, and when the old one stays.
#include <csignal>
#include <fstream>

#include "contract/host/upgrade_fixture.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST_F(Upgrade, ASessionWithoutItsPluginWaitsForAFolderThatIsNotThereYet) {
  auto& session = open();
  EXPECT_EQ(session.status().state, "no plugin");
  EXPECT_THAT(version(), AllOf(HasSubstr("no plugin for provider `lives`"), HasSubstr("put its .so into " + folder_)));
  EXPECT_EQ(refresh().error().code, Code::unavailable);
  install("v1");
  core_.until([&] { return session.status().state == "running"; });
  EXPECT_EQ(changes_, 1);
  EXPECT_EQ(version(), "1.0");
  EXPECT_TRUE(refresh());
}

TEST_F(Upgrade, ABadFileThatArrivesIsTheReasonOfTheOneWhoWaits) {
  auto& session = open();
  install("describe_breaks");
  core_.until([&] { return session.status().last_exit.find("signal 6") != std::string::npos; });
  EXPECT_EQ(session.status().state, "no plugin");
  install("v1");
  core_.until([&] { return session.status().state == "running"; });
}

TEST_F(Upgrade, AnotherVersionTakesOverOnceItIsOpened) {
  install("v1");
  auto& session = open();
  ASSERT_TRUE(refresh());
  const int before = session.status().pid;
  install("v2");
  core_.until([&] { return changes_ == 1; });
  EXPECT_EQ(version(), "2.0");
  EXPECT_NE(session.status().pid, before);
  EXPECT_THAT(events_, Contains("upgraded: 1.0 → 2.0"));
  pages_->all.clear();
  ASSERT_TRUE(refresh());
  EXPECT_EQ(pages_->records(), 2u) << "the kinds of the new version";
  core_.until([&] { return !fs::exists("/proc/" + std::to_string(before)); });
}

TEST_F(Upgrade, ACallInFlightEndsOnTheOldVersionAndTheWatchBeginsAnew) {
  install("v1");
  auto& session = open(R"({"mode":"wait"})");
  ASSERT_EQ(version(), "1.0");
  core_.until([&] { return session.status().state == "running"; });
  std::optional<Status> watched;
  core_.start(session.watch({}, keep(std::make_shared<Pages>())), watched);
  std::optional<Result<core::RefreshOutcome>> in_flight;
  core_.start(session.refresh({}, keep(pages_)), in_flight);
  install("v2");
  core_.until([&] { return in_flight.has_value(); });
  ASSERT_TRUE(*in_flight) << in_flight->error().message;
  EXPECT_EQ(pages_->records(), 1u) << "the call ended on the version on which it began";
  core_.until([&] { return watched.has_value(); });
  EXPECT_TRUE(*watched) << "a watch that must begin again has not failed: " << watched->error().message;
  core_.until([&] { return changes_ == 1; });
  EXPECT_EQ(version(), "2.0");
  EXPECT_EQ(session.status().crashes, 0u);
}

TEST_F(Upgrade, ABrokenFileIsRefusedAndTheOldVersionGoesOn) {
  install("v1");
  auto& session = open();
  ASSERT_TRUE(refresh());
  const int before = session.status().pid;
  for (const auto& [version, reason] : std::map<std::string, std::string>{
           {"describe_breaks", "signal 6"}, {"open_breaks", "this version opens for nobody"}}) {
    install(version);
    core_.until([&] { return session.status().upgrade_refused.find(reason) != std::string::npos; });
    EXPECT_TRUE(was_reported("upgrade_refused: " + file())) << version;
    EXPECT_THAT(session.status().upgrade_refused, HasSubstr("version 1.0 stays in use"));
    EXPECT_TRUE(refresh());
    EXPECT_EQ(session.status().pid, before);
  }
  EXPECT_EQ(session.status().crashes, 0u) << "a version that fails its trial is not a crash of the session";
  install("v2");
  core_.until([&] { return changes_ == 1; });
  EXPECT_EQ(session.status().upgrade_refused, "");
  EXPECT_EQ(version(), "2.0");
}

TEST_F(Upgrade, AVersionThatDiesInItsFirstRefreshesIsTakenBack) {
  install("v1");
  auto& session = open();
  ASSERT_TRUE(refresh());
  install("refresh_breaks");
  core_.until([&] { return changes_ == 1; });
  ASSERT_EQ(version(), "2.0");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(refresh());
  core_.until([&] { return was_reported("upgrade_reverted: " + file()); });
  EXPECT_EQ(version(), "1.0");
  EXPECT_TRUE(refresh());
  EXPECT_THAT(session.status().upgrade_refused, HasSubstr("failed 3 times before it finished a refresh"));
  EXPECT_EQ(session.status().crashes, 0u) << "the crashes of the reverted version do not count";
  (void)core_.run(factory_->scan());
  EXPECT_TRUE(refresh());
  EXPECT_EQ(version(), "1.0") << "the same bytes are not tried again";
  install("v2");
  core_.until([&] { return changes_ == 3; });
  EXPECT_EQ(version(), "2.0");
  EXPECT_EQ(session.status().upgrade_refused, "");
}

TEST_F(Upgrade, AVersionThatHangsInItsFirstRefreshesIsTakenBack) {
  install("v1");
  auto& session = open();
  ASSERT_TRUE(refresh());
  install("refresh_hangs");
  core_.until([&] { return changes_ == 1; });
  core::RefreshRequest soon;
  soon.deadline = milliseconds(300);
  const auto fails = [&] { EXPECT_FALSE(core_.run(session.refresh(soon, keep(pages_)))); };
  for (int i = 0; i < 4; ++i) fails();
  EXPECT_FALSE(was_reported("upgrade_reverted")) << "while the system is not known to be up, it may be what hangs";
  ASSERT_TRUE(core_.run(session.health()));
  for (int i = 0; i < 3; ++i) fails();
  core_.until([&] { return was_reported("upgrade_reverted: " + file()); });
  EXPECT_EQ(version(), "1.0");
  EXPECT_TRUE(refresh());
}

TEST_F(Upgrade, AVersionThatEndedARefreshIsNotTakenBackWhateverHappensToItsWorkers) {
  install("v1");
  auto& session = open();
  ASSERT_TRUE(refresh());
  install("v2");
  core_.until([&] { return changes_ == 1; });
  ASSERT_TRUE(refresh());
  for (int i = 0; i < 4; ++i) {
    const int before = session.status().pid;
    ASSERT_EQ(::kill(before, SIGKILL), 0);
    core_.until([&] { return session.status().state == "running" && session.status().pid != before; });
  }
  EXPECT_EQ(version(), "2.0");
  EXPECT_FALSE(was_reported("upgrade_reverted"));
}

/// A worker that dies is restarted with the bytes that were checked, never with a file that was refused later.
TEST_F(Upgrade, AWorkerThatDiesIsReplacedByTheVersionThatServesNotByTheRefusedOne) {
  install("v1");
  auto& session = open();
  ASSERT_TRUE(refresh());
  lock({{file(), host::sha256_of(file()).value()}});
  core_.until([&] { return found(file()).pin == "pinned"; });
  install("v2");
  core_.until([&] { return session.status().upgrade_refused.find("not the pinned ones") != std::string::npos; });
  const auto kill_and_expect_old_version = [&] {
    const int before = session.status().pid;
    ASSERT_EQ(::kill(before, SIGKILL), 0);
    core_.until([&] { return session.status().state == "running" && session.status().pid != before; });
    EXPECT_EQ(version(), "1.0");
    EXPECT_TRUE(refresh());
  };
  kill_and_expect_old_version();
  fs::remove(file());
  kill_and_expect_old_version();  // also if the file does not exist any more
}

TEST_F(Upgrade, BytesWrittenOverInPlaceDoNotReachTheWorkerThatRunsThem) {
  install("v1");
  auto& session = open();
  ASSERT_TRUE(refresh());
  std::ofstream(file(), std::ios::binary | std::ios::trunc)
      << read_file(DRIFTD_BINARY_DIR "/tests/lives/open_breaks.so");
  core_.until([&] { return !session.status().upgrade_refused.empty(); });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(refresh());
  EXPECT_EQ(session.status().crashes, 0u);
}

TEST_F(Upgrade, TheSameBytesWithAnotherTimeAreNoUpgradeAndForgiveNoCrash) {
  install("v1");
  auto& session = open(R"({"mode":"abort"})");
  EXPECT_FALSE(refresh());
  fs::last_write_time(file(), fs::file_time_type::clock::now());
  EXPECT_FALSE(refresh());
  EXPECT_EQ(found(file()).info ? "" : found(file()).info.error().message, "");
  EXPECT_FALSE(refresh());
  EXPECT_EQ(session.status().crashes, 3u);
  EXPECT_EQ(changes_, 0);
}

TEST_F(Upgrade, ACrashOfTheReplacedVersionIsNotTheNewOnes) {
  install("v1");
  auto& session = open(R"({"mode":"hold"})");
  core_.until([&] { return session.status().state == "running"; });
  const int old = session.status().pid;
  std::optional<Result<core::RefreshOutcome>> in_flight;
  core_.start(session.refresh({}, keep(pages_)), in_flight);
  install("v2");
  core_.until([&] { return changes_ == 1; });
  ASSERT_EQ(::kill(old, SIGKILL), 0);
  core_.until([&] { return in_flight.has_value(); });
  EXPECT_FALSE(was_reported("crashed")) << ::testing::PrintToString(events_);
  EXPECT_EQ(session.status().crashes, 0u);
}

TEST_F(Upgrade, InProcessCodeStaysLoadedAndSaysSo) {
  install("v1");
  auto& session = open("{}", core::SessionSpec::Isolation::in_process);
  ASSERT_TRUE(refresh());
  install("v2");
  core_.until([&] { return !session.status().upgrade_refused.empty(); });
  EXPECT_THAT(session.status().upgrade_refused, HasSubstr("restart the agent"));
  EXPECT_EQ(version(), "1.0");
}

}  // namespace
}  // namespace driftd::test
