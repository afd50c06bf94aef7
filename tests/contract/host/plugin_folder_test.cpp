// SPDX-License-Identifier: Apache-2.0
// What a scan of the plugin folders finds: files that are no plugins, hang, die, disappear or provide a name twice.
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <fstream>

#include "contract/host/upgrade_fixture.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using core::SessionFactory;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// Returns the process ids of the workers that this process started.
std::vector<int> worker_pids() {
  std::vector<int> out;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (int pid = 0; children >> pid;) {
      if (read_file("/proc/" + std::to_string(pid) + "/comm") == "driftd-provider\n") out.push_back(pid);
    }
  }
  return out;
}

/// A worker that dies while it describes a plugin, for example when memory runs out.
class DeadDescriber : public Upgrade {
 protected:
  /// Scans the folder, kills the worker that describes the plugin, and opens a session. The host describes the plugin
  /// again after `retry`.
  core::Session& open_after_death(milliseconds retry) {
    options_.restart_first = options_.restart_max = retry;
    factory_ = host::make_session_factory(options_);
    install("v1");
    std::optional<std::vector<SessionFactory::ScanResult>> scanned;
    core_.start(factory_->scan(), scanned);
    core_.until([&] { return kill_workers() || scanned; });
    core_.until([&] { return scanned.has_value(); });
    EXPECT_FALSE(scanned->at(0).info) << "the worker answered before it was killed";
    return open();
  }
  /// Returns true if it killed a worker.
  static bool kill_workers() {
    const auto pids = worker_pids();
    return std::count_if(pids.begin(), pids.end(), [](int pid) { return ::kill(pid, SIGKILL) == 0; }) > 0;
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
  EXPECT_EQ(events_.size(), before) << "a refused file is reported once, not at each scan";
}

TEST_F(Upgrade, PluginsThatHangWhileTheyLoadAreLookedAtTogetherAndAStopEndsThat) {
  install("v1");
  for (const auto* name : {"h1", "h2", "h3"}) install("apart/load_hangs", name);
  std::optional<std::vector<SessionFactory::ScanResult>> scanned;
  core_.start(factory_->scan(), scanned);
  core_.until([&] { return worker_pids().size() >= 3; });
  factory_->watch(false);
  core_.until([&] { return scanned.has_value(); }, std::chrono::seconds(8));
  core_.until([&] { return worker_pids().empty(); });
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

}  // namespace
}  // namespace driftd::test
