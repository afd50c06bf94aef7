// SPDX-License-Identifier: Apache-2.0
// The example provider `files`, written in C, C++, Rust and Go: each behaves the same when a host calls it.
#include <gmock/gmock.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "support/process.hpp"
#include "support/provider_probe.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
namespace fs = std::filesystem;

/// Takes root's rights to files from this thread while it exists, because file modes do not stop root.
class AsNobody {
 public:
  AsNobody() { ::setfsuid(65534); }
  ~AsNobody() { ::setfsuid(::geteuid()); }
};

class Files : public testing::TestWithParam<std::string> {
 protected:
  Files() { fs::create_directory(folder()); }
  static std::string library() { return "providers-examples/" + GetParam() + "/files.so"; }
  std::string folder() const { return dir_.file("watched"); }
  /// Writes a file into the watched folder and returns its path.
  std::string put(const std::string& name, const std::string& text) const {
    return dir_.write("watched/" + name, text);
  }
  ProviderProbe probe(const std::string& key = "key-canary") const {
    return ProviderProbe(library(), {{"path", folder()}, {"key", "token-1"}}, {{"token-1", key}});
  }
  /// Lets everybody reach the folder, so that only the mode under test stops them.
  void reachable() const {
    fs::permissions(dir_.path(), fs::perms(0755));
    fs::permissions(folder(), fs::perms(0755));
  }
  TempDir dir_;
};

TEST_P(Files, EveryRegularFileIsARecordAndTheKindIsComplete) {
  put("a.conf", "one");
  put("b.conf", "");
  fs::create_directory(folder() + "/sub");
  fs::create_symlink("a.conf", folder() + "/link");
  auto p = probe();
  const auto seen = p.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  ASSERT_EQ(seen.records.size(), 2u);
  EXPECT_EQ(seen.complete.at("file"), 2u);
  EXPECT_EQ(seen.body("file", "a.conf")["size"], 3);
  EXPECT_EQ(seen.body("file", "a.conf")["executable"], false);
}

TEST_P(Files, DigestIsTheHmacOfTheContentUnderTheSecretKey) {
  put("fox", "The quick brown fox jumps over the lazy dog");
  auto p = probe("key");
  EXPECT_EQ(p.refresh().body("file", "fox")["digest"],
            "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
}

TEST_P(Files, NeitherKeyNorContentIsInAnyOutput) {
  put("a.conf", "content-canary");
  auto p = probe();
  const auto seen = p.refresh();
  ASSERT_EQ(seen.records.size(), 1u);
  EXPECT_THAT(seen.records[0].body, Not(HasSubstr("canary")));
  EXPECT_THAT(seen.records[0].status, Not(HasSubstr("canary")));
}

TEST_P(Files, UnknownTokenIsDeniedBeforeAnythingIsListed) {
  put("a.conf", "one");
  ProviderProbe p(library(), {{"path", folder()}, {"key", "forged"}}, {{"token-1", "key"}});
  const auto seen = p.refresh();
  EXPECT_EQ(seen.status, DRIFTD_DENIED);
  EXPECT_THAT(seen.records, IsEmpty());
  EXPECT_THAT(seen.complete, IsEmpty());
}

TEST_P(Files, RemovedFileIsNotFoundAndTheOthersAreRead) {
  put("a.conf", "one");
  fs::remove(put("b.conf", "two"));
  auto p = probe();
  const auto seen = p.read({{"file", "a.conf"}, {"file", "b.conf"}, {"file", "../watched/a.conf"}, {"user", "a.conf"}});
  EXPECT_EQ(seen.status, DRIFTD_OK);
  EXPECT_EQ(seen.records.size(), 1u);
  EXPECT_EQ(seen.diagnostics.size(), 3u);
  EXPECT_EQ(seen.diagnostic(DRIFTD_NOT_FOUND)->id, "b.conf");
}

TEST_P(Files, FolderThatIsAwayIsUnavailableAndDeletesNothing) {
  put("a.conf", "one");
  auto p = probe();
  EXPECT_EQ(p.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UP));
  fs::rename(folder(), dir_.file("elsewhere"));
  const auto listed = p.refresh();
  EXPECT_EQ(listed.status, DRIFTD_UNAVAILABLE);
  EXPECT_THAT(listed.complete, IsEmpty());
  const auto read = p.read({{"file", "a.conf"}});
  EXPECT_EQ(read.status, DRIFTD_UNAVAILABLE);
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  const auto down = p.health();
  EXPECT_EQ(down.status, DRIFTD_OK);
  EXPECT_EQ(down.health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
}

TEST_P(Files, UnreadableFileKeepsItsRecordAndNamesTheRight) {
  reachable();
  const std::string path = put("secret.conf", "one");
  fs::permissions(path, fs::perms::none);
  auto p = probe();
  const AsNobody nobody;
  const auto seen = p.refresh();
  ASSERT_EQ(seen.status, DRIFTD_OK);
  EXPECT_EQ(seen.complete.at("file"), 1u);
  ASSERT_EQ(seen.records.at(0).unread.size(), 1u);
  EXPECT_EQ(seen.records[0].unread[0].path, "digest");
  EXPECT_EQ(seen.records[0].unread[0].code, DRIFTD_DENIED);
  EXPECT_THAT(seen.records[0].unread[0].reason, HasSubstr(path));
}

TEST_P(Files, RightOnTheFolderRevokedIsNamedAndNothingIsComplete) {
  reachable();
  put("a.conf", "one");
  auto p = probe();
  for (const int mode : {0700, 0744}) {  // others may not list it; they may list it but not enter it
    fs::permissions(folder(), fs::perms(mode));
    const AsNobody nobody;
    const auto seen = p.refresh();
    EXPECT_EQ(seen.status, DRIFTD_DENIED) << std::oct << mode;
    EXPECT_THAT(seen.complete, IsEmpty());
    ASSERT_EQ(seen.diagnostics.size(), 1u);
    EXPECT_EQ(seen.diagnostics[0].right, "r-x on " + folder());
    EXPECT_EQ(p.read({{"file", "a.conf"}}).diagnostic(DRIFTD_NOT_FOUND), nullptr);
  }
}

TEST_P(Files, HugeFileIsShownWithoutADigest) {
  fs::resize_file(put("huge", ""), (16u << 20) + 1);
  auto p = probe();
  const auto seen = p.refresh();
  ASSERT_EQ(seen.records.size(), 1u);
  EXPECT_EQ(seen.records[0].unread.at(0).code, DRIFTD_UNSUPPORTED);
  EXPECT_FALSE(seen.body("file", "huge").contains("digest"));
}

TEST_P(Files, WatchHintsAtOnceAndThenOnEachKindOfChange) {
  const std::string path = put("a.conf", "one");
  const std::vector<std::function<void()>> changes = {
      [&] { put("a.conf", "two"); }, [&] { fs::permissions(path, fs::perms(0700)); },
      [&] { fs::rename(path, folder() + "/b.conf"); }, [&] { fs::remove(folder() + "/b.conf"); }};
  auto p = probe();
  for (const auto& change : changes) {
    const auto changed_at_first_hint = [&](const Collected& seen) {
      if (seen.marks == 1) change();
      return seen.marks == 2;
    };
    const auto seen = p.watch({}, changed_at_first_hint, std::chrono::seconds(20));
    EXPECT_EQ(seen.status, DRIFTD_OK);
    EXPECT_EQ(seen.marks, 2);
    EXPECT_TRUE(seen.cursor.empty());
  }
}

TEST_P(Files, WatchEndsWhenTheFolderIsMovedAway) {
  auto p = probe();
  const auto move_at_first_hint = [&](const Collected&) {
    fs::rename(folder(), dir_.file("elsewhere"));
    return false;
  };
  EXPECT_EQ(p.watch({}, move_at_first_hint, std::chrono::seconds(20)).status, DRIFTD_UNAVAILABLE);
}

TEST_P(Files, CancelEndsABlockedWatchSoonerThanItsOwnLookAtTheClock) {
  using namespace std::chrono_literals;
  auto p = probe();
  auto fastest = std::chrono::steady_clock::duration::max();
  // One quick end is enough, because the machine may be busy during the others.
  for (int attempt = 0; attempt < 5; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(p.watch(
                   {}, [](const Collected&) { return false; }, 100ms)
                  .status,
              DRIFTD_OK);
    fastest = std::min(fastest, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LT(fastest, 900ms);
}

TEST_P(Files, SettingsAndKindAreDescribedAsJson) {
  auto p = probe();
  EXPECT_EQ(p.describe()["kinds"], nlohmann::json({"file"}));
  EXPECT_EQ(nlohmann::json::parse(p.schema("settings"))["properties"]["key"]["writeOnly"], true);
  EXPECT_EQ(nlohmann::json::parse(p.schema("file"))["schema"], "driftd-schema/1");
  EXPECT_TRUE(p.schema("folder").empty());
}

INSTANTIATE_TEST_SUITE_P(Toy, Files, testing::Values("c", "cpp", "rust", "go"),
                         [](const auto& language) { return language.param; });

}  // namespace
}  // namespace driftd::test
