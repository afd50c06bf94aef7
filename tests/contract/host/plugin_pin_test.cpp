// SPDX-License-Identifier: Apache-2.0
// driftd.lock pins the bytes of plugin files: only those run, and a lock that is changed takes effect at once.
#include "contract/host/upgrade_fixture.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

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
