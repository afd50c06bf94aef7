// SPDX-License-Identifier: Apache-2.0
// The bytes that are checked are the bytes that are loaded.
#include "ipc/plugin_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fstream>

#include "base/digest.hpp"
#include "support/process.hpp"
#include "worker/library.hpp"

namespace driftd::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kTester[] = DRIFTD_BINARY_DIR "/tests/providers/tester.so";

class LibraryFileTest : public ::testing::Test {
 protected:
  LibraryFileTest() : so_(folder_.file("tester.so")) { fs::copy_file(kTester, so_); }
  static std::string hash_of(const std::string& file) { return to_hex(sha256(test::read_file(file))); }
  const Library* load() {
    auto file = ipc::PluginFile::open(so_);
    EXPECT_TRUE(file) << file.error().message;
    const auto library = load_library(std::move(*file), true);
    EXPECT_TRUE(library) << library.error().message;
    return library ? *library : nullptr;
  }
  test::TempDir folder_;
  const std::string so_;
};

TEST_F(LibraryFileTest, SealedBytesAreACopyThatNobodyCanChangeWithTheirHash) {
  const std::string hash = hash_of(so_);
  auto file = ipc::PluginFile::open_sealed(so_);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->sha256(), hash);
  EXPECT_EQ(::fcntl(file->descriptor(), F_GET_SEALS) & (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW),
            F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
  std::ofstream(so_, std::ios::trunc) << "no library any more";
  auto handed_over = ipc::PluginFile::adopt(so_, ::dup(file->descriptor()));
  ASSERT_TRUE(handed_over) << handed_over.error().message;
  const auto library = load_library(std::move(*handed_over), true);
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_THAT((*library)->loaded.describe, HasSubstr("\"tester\""));
}

TEST_F(LibraryFileTest, AnEmptyOrHugeFileIsNoPluginAndIsNotRead) {
  EXPECT_THAT(ipc::PluginFile::open_sealed(folder_.write("empty.so", "")).error().message,
              HasSubstr("empty.so: is empty"));
  const std::string huge = folder_.write("huge.so", "");
  ASSERT_EQ(::truncate(huge.c_str(), 20ll << 30), 0);
  EXPECT_THAT(ipc::PluginFile::open_sealed(huge).error().message,
              HasSubstr("huge.so: has 21474836480 bytes; expected a plugin of at most 1073741824"));
}

TEST_F(LibraryFileTest, WhatReplacesTheFileAfterItWasOpenedIsNotLoaded) {
  auto file = ipc::PluginFile::open(so_);
  ASSERT_TRUE(file) << file.error().message;
  fs::rename(folder_.write("other", "no library"), so_);
  const auto library = load_library(std::move(*file), true);
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_THAT((*library)->loaded.describe, HasSubstr("\"tester\""));
}

TEST_F(LibraryFileTest, TheSameFileIsTheSameLibraryAndAnUpgradedOneIsAnother) {
  const Library* first = load();
  EXPECT_EQ(load(), first);
  fs::copy_file(kTester, folder_.file("new.so"));
  std::ofstream(folder_.file("new.so"), std::ios::app) << "upgraded";
  fs::rename(folder_.file("new.so"), so_);
  const Library* second = load();
  EXPECT_NE(second, first);
  std::ofstream(so_, std::ios::app) << "written over in place";
  const Library* third = load();
  EXPECT_NE(third, second);
  EXPECT_NE(third->table.describe, second->table.describe) << "other code, not only another entry";
}

TEST_F(LibraryFileTest, AFolderOrAPipeIsNoPlugin) {
  EXPECT_THAT(ipc::PluginFile::open(folder_.path()).error().message,
              HasSubstr("is not a file; expected a plugin (.so)"));
  const std::string pipe = folder_.file("pipe.so");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(ipc::PluginFile::open(pipe).error().message, HasSubstr("is not a file"));
}

TEST_F(LibraryFileTest, AFolderOnTheWayThatOthersMayWriteIsRefusedAlsoBehindALink) {
  fs::create_directory(folder_.path() / "loose");
  fs::create_symlink(so_, folder_.file("loose/link.so"));
  EXPECT_TRUE(ipc::check_file_rights(folder_.file("loose/link.so")));
  ::chmod(folder_.file("loose").c_str(), 0777);
  const Status refused = ipc::check_file_rights(folder_.file("loose/link.so"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("loose is writable by others (mode 0777); `chmod o-w "));
}

}  // namespace
}  // namespace driftd::worker
