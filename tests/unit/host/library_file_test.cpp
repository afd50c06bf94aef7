// SPDX-License-Identifier: Apache-2.0
// What is checked is what is loaded.
#include "host/library_file.hpp"

#include <gmock/gmock.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fstream>

#include "base/digest.hpp"
#include "host/library.hpp"
#include "support/process.hpp"

namespace driftd::host {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kTester[] = DRIFTD_BINARY_DIR "/tests/providers/tester.so";

class LibraryFileTest : public ::testing::Test {
 protected:
  LibraryFileTest() : so_(folder_.file("tester.so")) { fs::copy_file(kTester, so_); }
  static std::string hash_of(const std::string& file) { return to_hex(sha256(test::read_file(file))); }
  const Library* load(const std::string& pin = {}) {
    auto file = LibraryFile::open(so_, pin);
    EXPECT_TRUE(file) << file.error().message;
    const auto library = load_library(std::move(*file), true);
    EXPECT_TRUE(library) << library.error().message;
    return library ? *library : nullptr;
  }
  test::TempDir folder_;
  const std::string so_;
};

TEST_F(LibraryFileTest, AMatchingPinLoadsFromACopyThatNobodyCanChange) {
  auto file = LibraryFile::open(so_, hash_of(so_));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->copied());
  EXPECT_EQ(::fcntl(file->descriptor(), F_GET_SEALS) & (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW),
            F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
  std::ofstream(so_, std::ios::trunc) << "no library any more";
  const auto library = load_library(std::move(*file), true);
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_THAT((*library)->loaded.describe, HasSubstr("\"tester\""));
}

TEST_F(LibraryFileTest, AnotherByteThanPinnedIsRefusedWithBothHashesAndTheNextStep) {
  const std::string pin = hash_of(so_);
  std::ofstream(so_, std::ios::app) << "x";
  const auto file = LibraryFile::open(so_, pin);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Code::denied);
  EXPECT_THAT(file.error().message, HasSubstr(so_ + ": refused, because its bytes are not those that were locked: "
                                                    "expected sha256 " + pin + ", found " + hash_of(so_) +
                                              "; if the change is yours, run `driftd plugin lock`"));
}

TEST_F(LibraryFileTest, APinInCapitalsIsTheSamePin) {
  std::string pin = hash_of(so_);
  for (char& c : pin) c = static_cast<char>(::toupper(c));
  EXPECT_TRUE(LibraryFile::open(so_, pin));
}

TEST_F(LibraryFileTest, WhatReplacesTheFileAfterItWasOpenedIsNotLoaded) {
  auto file = LibraryFile::open(so_, {});
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
  EXPECT_THAT(LibraryFile::open(folder_.path(), {}).error().message, HasSubstr("is no file; expected a plugin (.so)"));
  const std::string pipe = folder_.file("pipe.so");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(LibraryFile::open(pipe, {}).error().message, HasSubstr("is no file"));
}

TEST_F(LibraryFileTest, AFolderOnTheWayThatOthersMayWriteIsRefusedAlsoBehindALink) {
  fs::create_directory(folder_.path() / "loose");
  fs::create_symlink(so_, folder_.file("loose/link.so"));
  EXPECT_TRUE(check_file_rights(folder_.file("loose/link.so")));
  ::chmod(folder_.file("loose").c_str(), 0777);
  const Status refused = check_file_rights(folder_.file("loose/link.so"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("loose is writable by others (mode 0777); `chmod o-w "));
}

}  // namespace
}  // namespace driftd::host
