// SPDX-License-Identifier: Apache-2.0
// Plugin files that arrive, are replaced, disappear or are pinned while sessions run on them.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "contract/host/core_thread.hpp"
#include "host/plugin_lock.hpp"
#include "support/process.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using core::SessionFactory;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// Returns the number of worker processes of this process.
int workers() {
  int n = 0;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (std::string pid; children >> pid;) n += read_file("/proc/" + pid + "/comm") == "driftd-provider\n" ? 1 : 0;
  }
  return n;
}

class Upgrade : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = dir_.file("plugins");
    options_ = host_options(core_);
    options_.plugin_dirs = {folder_};
    options_.plugin_lock = dir_.file("driftd.lock");
    options_.grace = milliseconds(500);
    options_.restart_first = options_.restart_max = milliseconds(5);
    factory_ = host::make_session_factory(options_);
    factory_->on_event([this](core::SessionEvent event) { events_.push_back(event.what + ": " + event.message); });
  }
  void TearDown() override {
    factory_->watch(false);
    if (session_) core_.run(session_->stop());
  }
  /// Installs a version by rename, as `install` and package managers do.
  void install(const std::string& version, const std::string& name = "lives") {
    fs::create_directories(folder_);
    fs::copy_file(DRIFTD_BINARY_DIR "/tests/lives/" + version + ".so", folder_ + "/new",
                  fs::copy_options::overwrite_existing);
    fs::rename(folder_ + "/new", file(name));
  }
  std::string file(const std::string& name = "lives") const { return folder_ + "/" + name + ".so"; }
  core::Session& open(const std::string& settings = "{}",
                      core::SessionSpec::Isolation isolation = core::SessionSpec::Isolation::process) {
    (void)core_.run(factory_->scan());
    core::SessionSpec spec;
    spec.backend = "b";
    spec.provider = "lives";
    spec.settings_json = settings;
    spec.isolation = isolation;
    spec.wait_for_plugin = true;
    if (kSanitized) spec.budgets.rss_bytes = 0;
    session_ = factory_->open(spec).value();
    session_->on_change([this] { ++changes_; });
    factory_->watch(true);
    return *session_;
  }
  std::string version() {
    const auto info = core_.run(session_->info());
    return info ? (*info)->version : info.error().message;
  }
  Result<core::RefreshOutcome> refresh() { return core_.run(session_->refresh({}, keep(pages_))); }
  bool was_reported(const std::string& part) const {
    return std::any_of(events_.begin(), events_.end(),
                       [&](const auto& e) { return e.find(part) != std::string::npos; });
  }
  SessionFactory::ScanResult found(const std::string& path) {
    for (auto& one : core_.run(factory_->scan())) {
      if (one.file == path) return one;
    }
    return {path, fail(Code::not_found, "not found by the scan")};
  }
  void lock(const std::map<std::string, std::string>& hexes) {
    fs::rename(dir_.write("lock.new", host::render_plugin_lock(hexes)), options_.plugin_lock);
  }

  TempDir dir_;
  std::string folder_;
  Core core_;
  host::HostOptions options_;
  std::shared_ptr<SessionFactory> factory_;
  std::shared_ptr<core::Session> session_;
  std::shared_ptr<Pages> pages_ = std::make_shared<Pages>();
  std::vector<std::string> events_;
  int changes_ = 0;
};

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
  EXPECT_EQ(pages_->records(), 1u) << "what it was at, it ended as it was";
  core_.until([&] { return watched.has_value(); });
  EXPECT_TRUE(*watched) << "to be begun anew is no failure: " << watched->error().message;
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
  EXPECT_EQ(session.status().crashes, 0u) << "a trial is nobody's crash";
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
  EXPECT_EQ(session.status().crashes, 0u) << "they were the other version's";
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
  EXPECT_FALSE(was_reported("upgrade_reverted")) << "a system that is not known to be up may be what hangs";
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

/// A worker that dies while it describes a plugin, as it does when memory runs out.
class DeadDescriber : public Upgrade {
 protected:
  core::Session& open_after_death(milliseconds again) {
    options_.restart_first = options_.restart_max = again;
    factory_ = host::make_session_factory(options_);
    install("v1");
    std::optional<std::vector<SessionFactory::ScanResult>> scanned;
    core_.start(factory_->scan(), scanned);
    core_.until([&] { return kill_workers() > 0 || scanned; });
    core_.until([&] { return scanned.has_value(); });
    EXPECT_FALSE(scanned->at(0).info) << "it was not killed in time";
    return open();
  }
  static int kill_workers() {
    int killed = 0;
    for (const auto& task : fs::directory_iterator("/proc/self/task")) {
      std::ifstream children(task.path() / "children");
      for (int pid = 0; children >> pid;) {
        const bool worker = read_file("/proc/" + std::to_string(pid) + "/comm") == "driftd-provider\n";
        killed += worker && ::kill(pid, SIGKILL) == 0 ? 1 : 0;
      }
    }
    return killed;
  }
};

TEST_F(DeadDescriber, IsAskedAgainByItself) {
  auto& session = open_after_death(milliseconds(500));
  core_.until([&] { return session.status().state == "running"; });
  EXPECT_TRUE(refresh());
}

TEST_F(DeadDescriber, IsAskedAgainByResume) {
  auto& session = open_after_death(std::chrono::hours(1));
  ASSERT_EQ(session.status().state, "no plugin");
  core_.until([&] {
    const bool waits = session.status().state == "no plugin";
    EXPECT_TRUE(!waits || session.resume());
    return session.status().state == "running";
  });
  EXPECT_TRUE(refresh());
}

/// The worker runs only bytes that were checked: a restart must not bring in a refused file.
TEST_F(Upgrade, AWorkerThatDiesIsReplacedByTheVersionThatServesNotByTheRefusedOne) {
  install("v1");
  auto& session = open();
  ASSERT_TRUE(refresh());
  lock({{file(), host::sha256_of(file()).value()}});
  core_.until([&] { return found(file()).pin == "pinned"; });
  install("v2");
  core_.until([&] { return session.status().upgrade_refused.find("not the pinned ones") != std::string::npos; });
  const auto killed_and_back = [&] {
    const int before = session.status().pid;
    ASSERT_EQ(::kill(before, SIGKILL), 0);
    core_.until([&] { return session.status().state == "running" && session.status().pid != before; });
    EXPECT_EQ(version(), "1.0");
    EXPECT_TRUE(refresh());
  };
  killed_and_back();
  fs::remove(file());
  killed_and_back();  // also if the file does not exist any more
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

TEST_F(Upgrade, AServingFileKeepsItsNameWhateverIsPutBesideIt) {
  install("v1");
  auto& session = open();
  ASSERT_TRUE(refresh());
  install("v2", "aaa");
  core_.until([&] { return was_reported("plugin_refused: " + file("aaa")) || !found(file("aaa")).info; });
  EXPECT_THAT(found(file("aaa")).info.error().message, HasSubstr("provider `lives` is already found in " + file()));
  EXPECT_EQ(version(), "1.0");
  EXPECT_EQ(session.status().file, file());
}

TEST_F(Upgrade, WhatIsNoFileHoldsNobodyUpAndIsNamed) {
  install("v1");
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  ASSERT_EQ(::truncate(dir_.write("plugins/huge.so", "").c_str(), 20ll << 30), 0);
  open();
  EXPECT_TRUE(refresh());
  EXPECT_THAT(found(file("pipe")).info.error().message, HasSubstr("pipe.so: is not a file"));
  EXPECT_THAT(found(file("huge")).info.error().message, HasSubstr("expected a plugin of at most"));
  EXPECT_TRUE(was_reported("plugin_refused: " + file("pipe")));
  const auto before = events_.size();
  (void)core_.run(factory_->scan());
  EXPECT_EQ(events_.size(), before) << "told once, not at each scan";
}

TEST_F(Upgrade, PluginsThatHangWhileTheyLoadAreLookedAtTogetherAndAStopEndsThat) {
  install("v1");
  for (const auto* name : {"h1", "h2", "h3"}) install("apart/load_hangs", name);
  std::optional<std::vector<SessionFactory::ScanResult>> scanned;
  core_.start(factory_->scan(), scanned);
  core_.until([&] { return workers() >= 3; });
  factory_->watch(false);
  core_.until([&] { return scanned.has_value(); }, std::chrono::seconds(8));
  core_.until([&] { return workers() == 0; });
}

TEST_F(Upgrade, AFileThatWentIsNamedAndItsWorkerStays) {
  install("v1");
  auto& session = open();
  ASSERT_TRUE(refresh());
  fs::remove(file());
  core_.until([&] { return found(file()).gone; });
  const auto seen = found(file());
  EXPECT_EQ(seen.used_by.at(0).backend, "b");
  EXPECT_TRUE(refresh());
  EXPECT_EQ(session.status().state, "running");
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

TEST_F(Upgrade, OnlyPinnedBytesRunAndANewLockIsTakenUp) {
  install("v1");
  const std::string v1 = host::sha256_of(file()).value();
  lock({{file(), v1}});
  auto& session = open();
  ASSERT_TRUE(refresh());
  EXPECT_EQ(found(file()).pin, "pinned");
  install("v2");
  core_.until([&] { return session.status().upgrade_refused.find("not the pinned ones") != std::string::npos; });
  EXPECT_EQ(found(file()).pin, "changed");
  EXPECT_EQ(version(), "1.0");
  lock({{file(), host::sha256_of(file()).value()}});
  core_.until([&] { return changes_ == 1; });
  EXPECT_EQ(version(), "2.0");
  EXPECT_EQ(found(file()).pin, "pinned");
}

TEST_F(Upgrade, AnUnpinnedPluginIsRefusedWithTheNextStep) {
  install("v1");
  lock({{"/somewhere/else.so", std::string(64, 'a')}});
  auto& session = open();
  EXPECT_EQ(session.status().state, "no plugin");
  EXPECT_EQ(found(file()).pin, "unpinned");
  EXPECT_THAT(found(file()).info.error().message,
              AllOf(HasSubstr("does not name it"), HasSubstr("`driftd plugin lock`")));
  fs::remove(options_.plugin_lock);
  core_.until([&] { return session.status().state == "running"; });
}

TEST_F(Upgrade, ALockThatCannotBeReadRefusesAllAndNamesTheLine) {
  install("v1");
  fs::rename(dir_.write("lock.new", "# pins\nnonsense\n"), options_.plugin_lock);
  auto& session = open();
  EXPECT_EQ(session.status().state, "no plugin");
  EXPECT_THAT(found(file()).info.error().message, AllOf(HasSubstr("driftd.lock:2:"), HasSubstr("nonsense")));
}

TEST_F(Upgrade, ALockThatOthersMayWriteRefusesAll) {
  install("v1");
  lock({{file(), host::sha256_of(file()).value()}});
  fs::permissions(options_.plugin_lock, fs::perms(0666));
  auto& session = open();
  EXPECT_THAT(found(file()).info.error().message, HasSubstr("driftd.lock is writable by others"));
  fs::permissions(options_.plugin_lock, fs::perms(0644));
  core_.until([&] { return session.status().state == "running"; });
}

}  // namespace
}  // namespace driftd::test
