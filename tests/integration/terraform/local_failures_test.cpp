// SPDX-License-Identifier: Apache-2.0
// What can happen to a state file, and a state that another one replaces after health has told its identity and before
// it is read.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

#include "settled.hpp"
#include "site.hpp"
#include "support/process.hpp"
#include "support/provider_probe.hpp"
#include "support/tofu.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class TerraformFile : public testing::Test {
 protected:
  TerraformFile() { write(state_text(1, 1)); }
  void write(const std::string& text) const { fs::rename(dir_.write("infra/new", text), path_); }
  ProviderProbe probe() const { return ProviderProbe("providers/terraform.so", {{"path", path_}}); }
  /// Expects that every call fails with `code`, concludes nothing, and names `reason` in its text or right.
  static void expect_failure(ProviderProbe& probe, const std::string& cursor, driftd_status code,
                             const std::string& reason) {
    for (const auto& seen : {probe.refresh(cursor), probe.refresh(), probe.read({{"instance", "terraform_data.a"}})}) {
      EXPECT_EQ(seen.status, code) << (seen.diagnostics.empty() ? "" : seen.diagnostics[0].text);
      EXPECT_TRUE(seen.records.empty() && seen.complete.empty() && !seen.unchanged);
      ASSERT_FALSE(seen.diagnostics.empty());
      EXPECT_EQ(seen.diagnostic(DRIFTD_NOT_FOUND), nullptr);
      EXPECT_THAT(seen.diagnostics[0].text + " " + seen.diagnostics[0].right, HasSubstr(reason));
    }
  }
  static auto health_state(ProviderProbe& probe) { return static_cast<int>(probe.health().health.state); }

  TempDir dir_;
  const std::string path_ = dir_.file("infra/terraform.tfstate");
};

TEST_F(TerraformFile, WhatCannotBeReadIsNamedAndStandsAsItWas) {
  ProviderProbe p = probe();
  const auto first = p.refresh();
  ASSERT_EQ(first.status, DRIFTD_OK);
  const std::string whole = read_file(path_);
  const auto fails_after = [&](const std::function<void()>& change, driftd_status code, const std::string& reason) {
    change();
    expect_failure(p, first.cursor, code, reason);
    EXPECT_NE(health_state(p), DRIFTD_HEALTH_UP);
  };
  fails_after([&] { fs::remove(path_); }, DRIFTD_UNAVAILABLE, "nothing is concluded from a missing state");
  fails_after([&] { fs::create_directory(path_); }, DRIFTD_INVALID, "is not a regular file");
  fs::remove(path_);
  fs::remove_all(fs::path(path_).parent_path());
  expect_failure(p, first.cursor, DRIFTD_UNAVAILABLE, "No such file");
  write(whole.substr(0, whole.size() / 2));
  expect_failure(p, first.cursor, DRIFTD_CORRUPT, "line 1");
  write(whole);
  EXPECT_EQ(p.refresh(first.cursor).status, DRIFTD_OK);
  EXPECT_EQ(health_state(p), DRIFTD_HEALTH_UP);
}

/// As `cp -p` does, or an editor that keeps the times.
TEST_F(TerraformFile, AWriteOfTheSameSizeWithItsTimeSetBackIsSeen) {
  ProviderProbe p = probe();
  const auto known = settled(p);
  struct stat before {};
  ASSERT_EQ(::stat(path_.c_str(), &before), 0);
  std::ofstream(path_, std::ios::in) << state_text(1, 2);
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  struct stat after {};
  ASSERT_EQ(::stat(path_.c_str(), &after), 0);
  ASSERT_EQ(after.st_size, before.st_size);
  ASSERT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
  EXPECT_FALSE(p.refresh(known.cursor).unchanged);
}

/// Two writes within one tick of the kernel's clock have the same times. From Linux 6.13 on a file's times are finer
/// once somebody has read them, so this test can fail only on an older kernel.
TEST_F(TerraformFile, AWriteRightBehindTheReadIsSeen) {
  ProviderProbe p = probe();
  for (int i = 0; i < 50; ++i) {
    std::ofstream(path_, std::ios::in) << state_text(1, 1);
    const auto first = p.refresh();
    std::ofstream(path_, std::ios::in) << state_text(1, 2);
    EXPECT_FALSE(p.refresh(first.cursor).unchanged) << "round " << i;
  }
}

/// A file system that keeps times in seconds, as ext4 with inodes of 128 bytes, ext3 and FAT do.
class DiskOfSeconds {
 public:
  explicit DiskOfSeconds(const TempDir& dir)
      : folder_(fs::path(dir.write("disk/image", std::string(4 << 20, '\0'))).parent_path().string()) {
    fs::create_directory(folder_ + "/mounted");
    const auto image = folder_ + "/image";
    mounted_ = run({"mkfs.ext4", "-q", "-I", "128", "-O", "^has_journal", image}).code == 0 &&
               run({"mount", "-o", "loop", image, folder_ + "/mounted"}).code == 0;
  }
  ~DiskOfSeconds() { EXPECT_TRUE(!mounted_ || run({"umount", folder_ + "/mounted"}).code == 0); }
  DiskOfSeconds(const DiskOfSeconds&) = delete;
  DiskOfSeconds& operator=(const DiskOfSeconds&) = delete;
  bool mounted() const { return mounted_; }
  std::string file(const std::string& name) const { return folder_ + "/mounted/" + name; }

 private:
  std::string folder_;
  bool mounted_ = false;
};

TEST_F(TerraformFile, AWriteWithinTheSameSecondIsSeenWhereTimesAreKeptInSeconds) {
  const DiskOfSeconds disk(dir_);
  if (!disk.mounted()) GTEST_SKIP() << "LOUD: no file system can be mounted here, times in seconds are not tested";
  const std::string path = disk.file("terraform.tfstate");
  ProviderProbe p("providers/terraform.so", {{"path", path}});
  const auto write_and_stat = [&](int value) {
    std::ofstream(path, fs::exists(path) ? std::ios::in : std::ios::out) << state_text(1, value);
    struct stat out {};
    EXPECT_EQ(::stat(path.c_str(), &out), 0);
    return out;
  };
  Collected first;
  bool same = false;
  for (int i = 0; i < 20 && !same; ++i) {
    const auto before = write_and_stat(1);
    first = p.refresh();
    const auto after = write_and_stat(2);
    same = before.st_size == after.st_size && before.st_ctim.tv_sec == after.st_ctim.tv_sec;
  }
  ASSERT_TRUE(same) << "no two writes within one second";
  EXPECT_FALSE(p.refresh(first.cursor).unchanged);
  EXPECT_EQ(settled(p).body("instance", "terraform_data.a")["input"]["value"], 2);
}

TEST_F(TerraformFile, ARefreshOfOneKindLeavesNoCursorThatStandsForTheOthers) {
  ProviderProbe p = probe();
  settled(p);  // a file that was just written is read again in any case
  const auto one = p.refresh_kind("output");
  ASSERT_TRUE(one.complete.contains("output") && !one.complete.contains("instance"));
  EXPECT_TRUE(p.refresh(one.cursor).complete.contains("instance"));
}

TEST_F(TerraformFile, ARightThatIsTakenIsNamed) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "LOUD: only root can read as another user, the missing right to a file is not tested";
  ProviderProbe p = probe();
  ::setfsuid(65534);  // for this thread only, which is the one that reads the file
  const auto first = p.refresh();
  EXPECT_EQ(first.status, DRIFTD_OK);
  ::setfsuid(0);
  ::chmod(path_.c_str(), 0600);
  ::setfsuid(65534);
  expect_failure(p, {}, DRIFTD_DENIED, "read access to " + path_);
  EXPECT_EQ(health_state(p), DRIFTD_HEALTH_DEGRADED);
  ::setfsuid(0);
}

TEST_F(TerraformFile, AnotherStateUnderThisNameIsNotToldAsTheOldOne) {
  ProviderProbe p = probe();
  const auto first = p.refresh();
  EXPECT_EQ(p.health().health.system_identity, "site");
  write(state_text(7, 2, "another"));  // after the host asked which state this is
  const auto refused = p.refresh(first.cursor);
  EXPECT_EQ(refused.status, DRIFTD_UNAVAILABLE);
  EXPECT_TRUE(refused.records.empty() && refused.complete.empty() && refused.cursor.empty());
  EXPECT_THAT(refused.diagnostics.at(0).text, HasSubstr("another state lies here (lineage another, before site)"));
  EXPECT_EQ(p.read({{"instance", "terraform_data.a"}}).status, DRIFTD_UNAVAILABLE)
      << "another state confirms no deletion";
  EXPECT_EQ(p.discover().status, DRIFTD_UNAVAILABLE) << "another state discovers nothing";
  EXPECT_EQ(p.refresh(first.cursor).status, DRIFTD_UNAVAILABLE)
      << "health has not told the host of the other state yet";
  EXPECT_EQ(p.health().health.system_identity, "another");  // now the host knows it
  EXPECT_EQ(p.refresh(first.cursor).body("instance", "terraform_data.a")["input"]["value"], 2);
  write(state_text(2, 3));  // and back
  EXPECT_EQ(p.refresh().status, DRIFTD_UNAVAILABLE);
  EXPECT_EQ(p.health().health.system_identity, "site");
  EXPECT_EQ(p.refresh().status, DRIFTD_OK);
}

TEST_F(TerraformFile, AFreshWorkerKnowsTheStateByItsCursorOrByItsHealth) {
  const std::string cursor = probe().refresh().cursor;
  write(state_text(7, 2, "another"));
  EXPECT_EQ(probe().refresh(cursor).status, DRIFTD_UNAVAILABLE);
  ProviderProbe fresh = probe();
  EXPECT_EQ(fresh.health().health.system_identity, "another");
  write(state_text(1, 1));
  EXPECT_EQ(fresh.refresh().status, DRIFTD_UNAVAILABLE) << "health has told the identity of another state";
}

/// Health tells the identity of the state without a refresh. Else the host would learn of another state only by its
/// records.
class StateIdentity : public testing::TestWithParam<const char*> {};

TEST_P(StateIdentity, IsToldByHealthFromTheStatesFirstBytes) {
  const auto site = make_site(GetParam());
  site->publish(1, 1);
  const std::string origin =
      std::string(site->speaks_tls() ? "https" : "http") + "://127.0.0.1:" + std::to_string(site->port());
  json backend = site->backend(origin);
  if (site->speaks_tls()) backend["insecure"] = true;
  ProviderProbe probe("providers/terraform.so", {{"backend", backend}}, {{"right", site->password()}});
  EXPECT_TRUE(eventually([&] { return probe.health().health.system_identity == "site"; }))
      << probe.health().health.reason;
  EXPECT_EQ(probe.refresh().status, DRIFTD_OK);
}

INSTANTIATE_TEST_SUITE_P(Terraform, StateIdentity, testing::Values("http", "s3", "consul", "kubernetes", "cloud"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace driftd::test
