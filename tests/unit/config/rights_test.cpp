// SPDX-License-Identifier: Apache-2.0
// Whoever can write the config or a secret controls the agent, so files that others may write are not used.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <filesystem>

#include "config/config.hpp"
#include "config/rights.hpp"
#include "support/process.hpp"

namespace driftd::config {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kText = "backends: [ { name: a, provider: p, settings: { password: \"${file:secret}\" } } ]\n";

class RightsOfFiles : public testing::Test {
 protected:
  void SetUp() override {
    fs::permissions(folder_.path(), fs::perms(0755));
    config_ = folder_.write("driftd.yaml", kText);
    secret_ = folder_.write("secret", "hunter2");
    fs::permissions(config_, fs::perms(0644));
    fs::permissions(secret_, fs::perms(0600));
  }
  /// Returns `valid`, or the error, followed by the warnings.
  std::string loaded() const {
    const auto config = load(config_);
    return config ? "valid\n" + render(config->warnings) : render(config.error());
  }
  test::TempDir folder_;
  std::string config_, secret_;
};

TEST_F(RightsOfFiles, FilesThatOnlyTheAgentMayWriteAreBelieved) { EXPECT_EQ(loaded(), "valid\n"); }

TEST_F(RightsOfFiles, AConfigThatOthersMayWriteIsRefused) {
  fs::permissions(config_, fs::perms(0666));
  EXPECT_THAT(loaded(), HasSubstr("others may write this file, so it is not read: " + config_ +
                                  " is writable by others (mode 0666); `chmod o-w"));
}

TEST_F(RightsOfFiles, ASecretThatOthersMayWriteIsRefused) {
  fs::permissions(secret_, fs::perms(0602));
  EXPECT_THAT(loaded(), HasSubstr("secret file " + secret_ + " is not used, because others may write it"));
}

TEST_F(RightsOfFiles, TheFileBehindALinkIsLookedAt) {
  fs::rename(secret_, folder_.file("real"));
  fs::permissions(folder_.file("real"), fs::perms(0622));
  fs::create_symlink("real", secret_);
  EXPECT_THAT(loaded(), HasSubstr("because others may write it: " + folder_.file("real")));
}

TEST_F(RightsOfFiles, ASecretThatAllMayReadIsAWarning) {
  fs::permissions(secret_, fs::perms(0644));
  EXPECT_THAT(loaded(), HasSubstr("valid\n"));
  EXPECT_THAT(loaded(), HasSubstr("is readable by all users; `chmod o-r"));
  fs::permissions(folder_.path(), fs::perms(0700));
  EXPECT_EQ(loaded(), "valid\n") << "nobody else comes there";
}

TEST_F(RightsOfFiles, AFolderThatOthersMayWriteIsAWarning) {
  fs::permissions(folder_.path(), fs::perms(0777));
  EXPECT_THAT(loaded(), HasSubstr("valid\n"));
  EXPECT_THAT(loaded(), HasSubstr("others may put another file in the place of this one: " + folder_.path().string() +
                                  " is writable by others"));
  EXPECT_THAT(loaded(), HasSubstr("others may put another file in the place of secret file"));
}

TEST_F(RightsOfFiles, AGroupThatIsNotTheAgentsIsAnother) {
  if (::geteuid() != 0) GTEST_SKIP() << "LOUD: only root gives files to another group";
  ASSERT_EQ(::chown(config_.c_str(), 0, 4321), 0);
  fs::permissions(config_, fs::perms(0664));
  EXPECT_THAT(loaded(), HasSubstr("is writable by group 4321"));
}

TEST_F(RightsOfFiles, AStrangersFileIsAWarningUnlessMoreMayWriteIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "LOUD: only root gives files away";
  ASSERT_EQ(::chown(config_.c_str(), 4321, 4321), 0);
  EXPECT_THAT(loaded(), HasSubstr("belongs to uid 4321"));
  EXPECT_THAT(loaded(), HasSubstr("valid\n"));
  fs::permissions(config_, fs::perms(0646));
  EXPECT_THAT(loaded(), HasSubstr("so it is not read"));
}

TEST_F(RightsOfFiles, APipeAndAMissingFileHaveNone) {
  ASSERT_EQ(::mkfifo(folder_.file("pipe").c_str(), 0666), 0);
  EXPECT_TRUE(inspect_rights(folder_.file("pipe")).written.empty());
  EXPECT_TRUE(inspect_rights(folder_.file("none")).written.empty());
}

TEST_F(RightsOfFiles, WhatWasOpenedIsJudgedAndNotWhatIsAtItsPathMeanwhile) {
  fs::permissions(secret_, fs::perms(0602));
  const int opened = ::open(secret_.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(opened, 0);
  EXPECT_THAT(inspect_rights(secret_, opened)->written, HasSubstr("is writable by others (mode 0602)"));
  fs::rename(secret_, folder_.file("theirs"));
  folder_.write("secret", "hunter2");
  fs::permissions(secret_, fs::perms(0600));
  EXPECT_TRUE(inspect_rights(secret_).written.empty());
  EXPECT_FALSE(inspect_rights(secret_, opened).has_value()) << "its path leads to another one";
  fs::remove(secret_);
  EXPECT_THAT(inspect_rights(secret_, opened)->written, HasSubstr("is writable by others")) << "no path leads to it";
  ::close(opened);
}

/// user::rw- user:65534:rwx group::r-- mask::rwx other::---, as setfacl writes it.
TEST_F(RightsOfFiles, AnAclIsThatOfWhatWasOpened) {
  const unsigned char acl[] = {2, 0,    0,    0,    0x01, 0,    6,    0, 0xff, 0xff, 0xff, 0xff, 0x02, 0,    7,
                               0, 0xfe, 0xff, 0,    0,    0x04, 0,    4, 0,    0xff, 0xff, 0xff, 0xff, 0x10, 0,
                               7, 0,    0xff, 0xff, 0xff, 0xff, 0x20, 0, 0,    0,    0xff, 0xff, 0xff, 0xff};
  if (::setxattr(secret_.c_str(), "system.posix_acl_access", acl, sizeof acl, 0) != 0)
    GTEST_SKIP() << "LOUD: no ACLs here, so this rule is not tested";
  EXPECT_THAT(loaded(), HasSubstr(secret_ + " has an ACL that lets others write"));
  const int opened = ::open(secret_.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(opened, 0);
  fs::remove(secret_);
  EXPECT_THAT(inspect_rights(secret_, opened)->written, HasSubstr("has an ACL that lets others write"));
  ::close(opened);
}

TEST(ErrorText, WhatTheFileSaysIsShownAndNotObeyed) {
  const auto loaded = parse("age\xe2\x80\xaent: 1\n", "driftd.yaml");
  ASSERT_FALSE(loaded);
  const std::string text = render(loaded.error());
  EXPECT_THAT(text, HasSubstr("\\u202e"));
  EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);
}

}  // namespace
}  // namespace driftd::config
