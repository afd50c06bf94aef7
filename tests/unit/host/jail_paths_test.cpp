// SPDX-License-Identifier: Apache-2.0
#include "host/jail_paths.hpp"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <filesystem>

#include "support/process.hpp"

namespace driftd::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

constexpr char kSchema[] = R"({"type":"object","properties":{
  "state":{"type":"string","format":"path"}, "name":{"type":"string"},
  "address":{"type":"string","format":"socket"},
  "tls":{"type":"object","properties":{"ca":{"type":"string","format":"path"}}},
  "files":{"type":"array","items":{"anyOf":[{"type":"string","format":"path"}]}}},
  "additionalProperties":{"type":"string","format":"path"}})";

JailPaths paths(const std::string& settings) { return jail_paths(kSchema, settings); }

TEST(JailPaths, AFileOpensItsFolderBecauseItIsReplacedByRename) {
  EXPECT_THAT(paths(R"({"state":"/nowhere/at/all.json"})").read, ElementsAre("/nowhere/at"));
  EXPECT_FALSE(paths(R"({"state":"/nowhere/at/all.json"})").unix_sockets);
}

TEST(JailPaths, AFolderOpensItself) {
  EXPECT_THAT(paths(R"({"state":"/usr/share/"})").read, ElementsAre("/usr/share"));
}

TEST(JailPaths, AFileInAFolderOfEverybodyOpensOnlyItself) {
  EXPECT_THAT(paths(R"({"state":"/etc/hosts"})").read, ElementsAre("/etc/hosts"));
  EXPECT_THAT(paths(R"({"state":"/state.json"})").read, ElementsAre("/state.json"));
}

TEST(JailPaths, NestedListedAndUnnamedSettingsCount) {
  EXPECT_THAT(paths(R"({"tls":{"ca":"/a/ca.pem"},"files":["/b/1","/c/2"],"other":"/d/3","name":"/e/4"})").read,
              ElementsAre("/a", "/b", "/c", "/d"));
}

/// A fixture with an agent's files in the folders conf and data.
class JailPathsOfAnAgent : public ::testing::Test {
 protected:
  JailPathsOfAnAgent() {
    for (const char* file : {"conf/driftd.yaml", "conf/ca.pem", "conf/secrets/pw", "conf/states/one",
                             "data/installation.key", "data/x", "infra/state.json", "real/state.json"}) {
      dir_.write(file, "text");
    }
    own_ = {at("conf/driftd.yaml"), at("conf"), at("conf/secrets/pw"), at("data"), at("data/installation.key")};
  }
  std::string at(const std::string& name) const { return dir_.file(name); }
  JailPaths of(const std::string& value) const { return jail_paths(kSchema, R"({"state":")" + value + R"("})", own_); }
  void give(const std::string& name) const { ASSERT_EQ(::lchown(at(name).c_str(), 65534, static_cast<gid_t>(-1)), 0); }

  test::TempDir dir_;
  std::vector<fs::path> own_;
};

TEST_F(JailPathsOfAnAgent, AFolderOfItsOwnIsOpenedForAFile) {
  EXPECT_THAT(of(at("infra/state.json")).read, ElementsAre(at("infra")));
  EXPECT_THAT(of(at("conf/../infra/state.json")).read, ElementsAre(at("infra")));
}

TEST_F(JailPathsOfAnAgent, BesideTheAgentsFilesOnlyTheFileIsOpened) {
  for (const char* name : {"conf/ca.pem", "conf/new.pem", "conf/states/one", "data/x"}) {
    EXPECT_THAT(of(at(name)).read, ElementsAre(at(name)));
    EXPECT_THAT(of(at(name)).refused, IsEmpty());
  }
  EXPECT_THAT(of(at("above.json")).read, ElementsAre(at("above.json"))) << "the folder holds conf and data";
}

TEST_F(JailPathsOfAnAgent, TheAgentsFilesAndFoldersAreRefused) {
  EXPECT_THAT(of(at("conf")).refused,
              ElementsAre(at("conf") + ": a plugin may not read this folder, because it contains the agent's own " +
                          at("conf/driftd.yaml") + "; name a file in it, or another folder"));
  EXPECT_THAT(of(at("data/installation.key")).refused,
              ElementsAre(at("data/installation.key") +
                          ": a plugin may not read this file, because it is the agent's own; name another one"));
  for (const std::string& value : {at("data"), at("conf/secrets"), at("conf/secrets/pw"), at("conf/driftd.yaml"),
                                   at("infra/../data"), dir_.path().string()}) {
    EXPECT_THAT(of(value).read, IsEmpty()) << value;
    EXPECT_EQ(of(value).refused.size(), 1u) << value;
  }
}

TEST_F(JailPathsOfAnAgent, AFolderThatTheSettingNamesInsideTheConfigsIsOpened) {
  EXPECT_THAT(of(at("conf/states")).read, ElementsAre(at("conf/states")));
}

TEST_F(JailPathsOfAnAgent, AnotherNameOfAFileOfTheAgentIsRefusedToo) {
  fs::create_hard_link(at("data/installation.key"), at("infra/hard"));
  EXPECT_EQ(of(at("infra/hard")).refused.size(), 1u);
}

TEST_F(JailPathsOfAnAgent, WhatIsEverybodysIsRefusedAsAFolder) {
  EXPECT_THAT(of("/etc").refused,
              ElementsAre("/etc: a plugin may not read this folder, because it is a shared folder; name a file in "
                          "it, or another folder"));
  for (const char* value : {"/", "/usr/../etc", "/usr/..", "/tmp", "/opt/", "/var"}) {
    EXPECT_THAT(of(value).read, IsEmpty()) << value;
    EXPECT_EQ(of(value).refused.size(), 1u) << value;
  }
  ASSERT_EQ(::chmod(at("infra").c_str(), 01777), 0);
  EXPECT_THAT(of(at("infra/state.json")).read, ElementsAre(at("infra/state.json"))) << "sticky";
}

TEST_F(JailPathsOfAnAgent, BehindATrustedLinkTheTargetAloneIsOpened) {
  fs::create_directory(at("links"));
  fs::create_symlink(at("real/state.json"), at("links/state.json"));
  EXPECT_THAT(of(at("links/state.json")).read, ElementsAre(at("links"), at("real/state.json")));
}

TEST_F(JailPathsOfAnAgent, AFolderBehindALinkIsStillTheFilesOwn) {
  fs::create_directory_symlink(at("infra"), at("elsewhere"));
  EXPECT_THAT(of(at("elsewhere/state.json")).read, ElementsAre(at("infra")));
}

TEST_F(JailPathsOfAnAgent, AStrangersLinkIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "LOUD: only root gives links away, so this rule is not tested";
  fs::create_directory(at("drop"));
  fs::create_symlink(at("conf/secrets/pw"), at("drop/state"));
  give("drop/state");
  EXPECT_THAT(of(at("drop/state")).read, IsEmpty());
  EXPECT_THAT(of(at("drop/state")).refused,
              ElementsAre(at("drop/state") + ": this link is not followed, because " + at("drop/state") +
                          " belongs to uid 65534, expected root or uid 0; look at it, then `chown -h 0 " +
                          at("drop/state") + "`"));
}

TEST_F(JailPathsOfAnAgent, ALinkInAFolderThatOthersMayWriteIsNotFollowed) {
  fs::create_directory(at("drop"));
  fs::create_symlink(at("real/state.json"), at("drop/state"));
  fs::create_directory_symlink(at("real"), at("drop/deep"));
  ASSERT_EQ(::chmod(at("drop").c_str(), 0777), 0);
  for (const char* name : {"drop/state", "drop/deep/state.json"}) {
    EXPECT_THAT(of(at(name)).read, IsEmpty()) << name;
    EXPECT_EQ(of(at(name)).refused.size(), 1u) << name;
  }
}

TEST_F(JailPathsOfAnAgent, AFileThatIsOpenedAloneIsSeenToBeReplaced) {
  const JailPaths before = of(at("conf/ca.pem"));
  EXPECT_NE(before.seen, "");
  EXPECT_EQ(of(at("conf/ca.pem")).seen, before.seen);
  fs::rename(dir_.write("conf/fresh", "text"), at("conf/ca.pem"));
  EXPECT_NE(of(at("conf/ca.pem")).seen, before.seen);
}

/// A jail is bound to device and inode of what was at the paths when the worker started.
TEST_F(JailPathsOfAnAgent, AFolderThatIsReplacedIsSeenWhateverItHolds) {
  const JailPaths before = of(at("infra/state.json"));
  dir_.write("infra/other.json", "text");
  fs::rename(dir_.write("infra/fresh", "text"), at("infra/state.json"));
  EXPECT_EQ(of(at("infra/state.json")).seen, before.seen) << "what changes inside is seen through the open folder";
  fs::rename(at("infra"), at("infra.old"));
  const JailPaths away = of(at("infra/state.json"));
  EXPECT_NE(away.seen, before.seen);
  dir_.write("infra/state.json", "text");
  const JailPaths after = of(at("infra/state.json"));
  EXPECT_NE(after.seen, before.seen);
  EXPECT_NE(after.seen, away.seen);
  EXPECT_EQ(after.replaced_since(before), at("infra"));
  EXPECT_EQ(before.replaced_since(before), "");
}

TEST_F(JailPathsOfAnAgent, ALinkThatLeadsElsewhereIsSeen) {
  dir_.write("releases/1/state.json", "text");
  dir_.write("releases/2/state.json", "text");
  fs::create_directory_symlink(at("releases/1"), at("current"));
  const JailPaths before = of(at("current/state.json"));
  fs::create_directory_symlink(at("releases/2"), at("next"));
  fs::rename(at("next"), at("current"));
  const JailPaths after = of(at("current/state.json"));
  EXPECT_NE(after.seen, before.seen);
  EXPECT_EQ(after.replaced_since(before), at("releases/2"));
}

class JailPathsOfSockets : public ::testing::Test {
 protected:
  JailPathsOfSockets() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~JailPathsOfSockets() override { ::close(fd_); }
  static JailPaths address(const std::string& value) { return paths(R"({"address":")" + value + R"("})"); }

  test::TempDir dir_;
  const std::string socket_ = dir_.file("s.sock");
  const int fd_;
};

TEST_F(JailPathsOfSockets, ASocketAllowsUnixSocketsAndOpensNoFolder) {
  for (const std::string& value : {socket_, "unix:" + socket_, "unix://" + socket_, dir_.path().string(),
                                   dir_.path().string() + "/", "unix:" + dir_.path().string() + ":5432"}) {
    EXPECT_TRUE(address(value).unix_sockets) << value;
    EXPECT_THAT(address(value).read, IsEmpty()) << value;
  }
  EXPECT_FALSE(address("127.0.0.1:6379").unix_sockets);
}

TEST_F(JailPathsOfSockets, WhatIsNoneAllowsNothing) {
  const std::string file = dir_.write("folder/file", "");
  EXPECT_FALSE(address(file).unix_sockets);
  EXPECT_FALSE(address(dir_.file("folder")).unix_sockets);
  EXPECT_EQ(address(file).seen, "") << "no path of it is opened";
}

TEST_F(JailPathsOfSockets, OneThatIsNotThereYetIsAwaited) {
  const std::string later = dir_.file("later.sock");
  const JailPaths before = address(later);
  EXPECT_FALSE(before.unix_sockets);
  EXPECT_NE(before.seen, "");
  fs::rename(socket_, later);
  EXPECT_TRUE(address(later).unix_sockets);
}

TEST_F(JailPathsOfSockets, ASettingThatIsAPathAndASocketIsAPath) {
  const JailPaths both = jail_paths(R"({"properties":{"a":{"allOf":[{"format":"path"},{"format":"socket"}]}}})",
                                    R"({"a":")" + socket_ + R"("})");
  EXPECT_FALSE(both.unix_sockets);
  EXPECT_THAT(both.read, ElementsAre(dir_.path().string()));
}

TEST(JailPaths, WhatIsNoAbsolutePathOrNoJsonOpensNothing) {
  EXPECT_EQ(paths(R"({"state":"relative/path"})"), JailPaths{});
  EXPECT_EQ(paths("no json"), JailPaths{});
  EXPECT_EQ(jail_paths("", R"({"state":"/a/b"})"), JailPaths{});
  EXPECT_EQ(jail_paths(R"({"properties":7,"items":"x","anyOf":{}})", R"({"state":["/a/b"]})"), JailPaths{});
}

}  // namespace
}  // namespace driftd::host
