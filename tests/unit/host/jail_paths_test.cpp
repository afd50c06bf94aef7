// SPDX-License-Identifier: Apache-2.0
#include "host/jail_paths.hpp"

#include <gmock/gmock.h>
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

TEST(JailPaths, AFolderOpensItself) { EXPECT_THAT(paths(R"({"state":"/usr/share/"})").read, ElementsAre("/usr/share")); }

TEST(JailPaths, AFileInAFolderOfEverybodyOpensOnlyItself) {
  EXPECT_THAT(paths(R"({"state":"/etc/hosts"})").read, ElementsAre("/etc/hosts"));
  EXPECT_THAT(paths(R"({"state":"/state.json"})").read, ElementsAre("/state.json"));
  EXPECT_THAT(paths(R"({"state":"/"})").read, IsEmpty());
  EXPECT_THAT(paths(R"({"state":"/usr/.."})").read, IsEmpty());
}

TEST(JailPaths, NestedListedAndUnnamedSettingsCount) {
  EXPECT_THAT(paths(R"({"tls":{"ca":"/a/ca.pem"},"files":["/b/1","/c/2"],"other":"/d/3","name":"/e/4"})").read,
              ElementsAre("/a", "/b", "/c", "/d"));
}

TEST(JailPaths, WhereALinkLeadsIsOpenedToo) {
  test::TempDir folder;
  fs::create_directory(folder.path() / "real");
  folder.write("real/state.json", "{}");
  fs::create_directory(folder.path() / "links");
  fs::create_symlink(folder.file("real/state.json"), folder.file("links/state.json"));
  EXPECT_THAT(paths(R"({"state":")" + folder.file("links/state.json") + R"("})").read,
              ElementsAre(folder.file("links"), folder.file("real")));
}

TEST(JailPaths, ASocketAllowsUnixSocketsAndOpensNoFolder) {
  for (const char* address : {"/run/x/s.sock", "unix:/run/x/s.sock", "unix:///run/x/s.sock"}) {
    const JailPaths found = paths(std::string(R"({"address":")") + address + R"("})");
    EXPECT_TRUE(found.unix_sockets) << address;
    EXPECT_THAT(found.read, IsEmpty());
  }
  EXPECT_FALSE(paths(R"({"address":"127.0.0.1:6379"})").unix_sockets);
}

TEST(JailPaths, WhatIsNoAbsolutePathOrNoJsonOpensNothing) {
  EXPECT_EQ(paths(R"({"state":"relative/path"})"), JailPaths{});
  EXPECT_EQ(paths("no json"), JailPaths{});
  EXPECT_EQ(jail_paths("", R"({"state":"/a/b"})"), JailPaths{});
  EXPECT_EQ(jail_paths(R"({"properties":7,"items":"x","anyOf":{}})", R"({"state":["/a/b"]})"), JailPaths{});
}

}  // namespace
}  // namespace driftd::host
