// SPDX-License-Identifier: Apache-2.0
// Which owners and writers a plugin's file, its folders and the links on the way to it may have.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <filesystem>

#include "base/trust.hpp"
#include "ipc/plugin_file.hpp"
#include "support/process.hpp"

namespace driftd::ipc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uid_t kStranger = 65534;

class FileRights : public ::testing::Test {
 protected:
  FileRights() {
    for (const char* name : {"top", "good", "shared"}) fs::create_directory(folder_.path() / name);
    so_ = folder_.write("good/ok.so", "a plugin");
  }
  std::string refusal(const std::string& file) const {
    const Status checked = check_file_rights(file);
    return checked ? std::string() : checked.error().message;
  }
  void mode(const std::string& name, mode_t bits) const { ASSERT_EQ(::chmod(folder_.file(name).c_str(), bits), 0); }
  void give(const std::string& name, uid_t owner) const {
    ASSERT_EQ(::lchown(folder_.file(name).c_str(), owner, static_cast<gid_t>(-1)), 0);
  }
  static bool root() { return ::geteuid() == 0; }
  test::TempDir folder_;
  std::string so_;
};

TEST_F(FileRights, AFileOfRootOrOneselfInSuchFoldersPasses) { EXPECT_EQ(refusal(so_), ""); }

TEST_F(FileRights, AStrangersFileIsRefusedAlsoInAStickyFolder) {
  if (!root()) GTEST_SKIP() << "LOUD: only root gives files away, so this rule is not tested";
  mode("good", 01777);
  EXPECT_EQ(refusal(so_), "") << "root's own file in a sticky folder";
  give("good/ok.so", kStranger);
  EXPECT_THAT(refusal(so_), HasSubstr(so_ + ": refused, because " + so_ +
                                      " belongs to uid 65534, expected root or uid 0; look at it, then "
                                      "`chown -h 0 " +
                                      so_ + "`"));
}

TEST_F(FileRights, AStrangersFolderIsRefused) {
  if (!root()) GTEST_SKIP() << "LOUD: only root gives folders away, so this rule is not tested";
  give("good", kStranger);
  EXPECT_THAT(refusal(so_), HasSubstr(folder_.file("good") + " belongs to uid 65534"));
}

TEST_F(FileRights, ALinkInTheMiddleIsAHopLikeAnyOther) {
  fs::create_symlink(folder_.path() / "good", folder_.path() / "shared/current");
  fs::create_symlink("../shared/current/ok.so", folder_.path() / "top/ok.so");
  EXPECT_EQ(refusal(folder_.file("top/ok.so")), "");
  mode("shared", 0777);
  EXPECT_THAT(refusal(folder_.file("top/ok.so")),
              HasSubstr(folder_.file("shared") + " is writable by others (mode 0777); `chmod o-w "));
}

TEST_F(FileRights, AStrangersLinkIsRefused) {
  if (!root()) GTEST_SKIP() << "LOUD: only root gives links away, so this rule is not tested";
  fs::create_symlink(so_, folder_.path() / "top/ok.so");
  give("top/ok.so", kStranger);
  EXPECT_THAT(refusal(folder_.file("top/ok.so")), HasSubstr(folder_.file("top/ok.so") + " belongs to uid 65534"));
}

TEST_F(FileRights, LinksInACircleEnd) {
  fs::create_symlink("b.so", folder_.path() / "top/a.so");
  fs::create_symlink("a.so", folder_.path() / "top/b.so");
  EXPECT_THAT(refusal(folder_.file("top/a.so")), HasSubstr("Too many levels of symbolic links"));
}

/// user::rw- user:65534:rwx group::r-- mask::rwx other::r--, as setfacl writes it.
TEST_F(FileRights, AnAclBehindAGroupThatIsTrustedIsRefused) {
  const unsigned char acl[] = {2, 0,    0,    0,    0x01, 0,    6,    0, 0xff, 0xff, 0xff, 0xff, 0x02, 0,    7,
                               0, 0xfe, 0xff, 0,    0,    0x04, 0,    4, 0,    0xff, 0xff, 0xff, 0xff, 0x10, 0,
                               7, 0,    0xff, 0xff, 0xff, 0xff, 0x20, 0, 4,    0,    0xff, 0xff, 0xff, 0xff};
  if (::setxattr(so_.c_str(), "system.posix_acl_access", acl, sizeof acl, 0) != 0)
    GTEST_SKIP() << "LOUD: no ACLs here, so this rule is not tested";
  EXPECT_THAT(refusal(so_), HasSubstr(so_ + " has an ACL that lets others write; see `getfacl " + so_ + "`"));
}

TEST(OtherWriters, EverybodyAndStrangeGroupsCountRootAndPrivateGroupsDoNot) {
  const gid_t strange = ::getegid() + 4711;
  EXPECT_EQ(other_writers(S_IFREG | 0646, 0, 0), "others");
  EXPECT_EQ(other_writers(S_IFREG | 0664, 0, strange), "group " + std::to_string(strange));
  EXPECT_EQ(other_writers(S_IFDIR | 0775, 1000, strange), "group " + std::to_string(strange));
  EXPECT_EQ(other_writers(S_IFREG | 0644, 1000, strange), "");
  EXPECT_EQ(other_writers(S_IFREG | 0664, strange, strange), "") << "the owner's private group";
  if (::getuid() == 0) {  // another user may only set the group that it has
    const gid_t before = ::getegid();
    ASSERT_EQ(::setegid(strange), 0);
    EXPECT_EQ(other_writers(S_IFREG | 0664, 1000, strange), "group " + std::to_string(strange))
        << "people may be in the agent's";
    ASSERT_EQ(::setegid(before), 0);
  }
  EXPECT_EQ(other_writers(S_IFREG | 0664, 1000, 0), "") << "root's";
  EXPECT_EQ(other_writers(S_IFDIR | 01777, 0, 0), "") << "sticky, of root";
  EXPECT_EQ(other_writers(S_IFDIR | 01777, 1000, 0), "others") << "sticky, of somebody who may rename in it";
}

}  // namespace
}  // namespace driftd::ipc
