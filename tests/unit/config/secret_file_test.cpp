// SPDX-License-Identifier: Apache-2.0
// Reading a secret file at the start waits only if the file is being written.
#include "config/secret_file.hpp"

#include <gmock/gmock.h>
#include <filesystem>

#include "support/process.hpp"

namespace driftd::config {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class SecretFile : public testing::Test {
 protected:
  /// Writes the file in place, with a modification time `ago` before now.
  void write(const std::string& text, seconds ago = seconds(0)) const {
    folder_.write("password", text);
    fs::permissions(path(), fs::perms(0600));
    fs::last_write_time(path(), fs::file_time_type::clock::now() - ago);
  }
  std::string path() const { return folder_.file("password"); }
  /// Reads the file. `meanwhile` is called during each wait, with the number of the wait.
  std::string read(const std::function<void(int)>& meanwhile = {}) {
    const auto out = read_secret_file(path(), [&](milliseconds) {
      ++waits_;
      if (meanwhile) meanwhile(waits_);
    });
    return out ? out->text : out.error().message;
  }
  const test::TempDir folder_;
  int waits_ = 0;
};

TEST_F(SecretFile, OneThatIsWrittenInPlaceIsTakenWhole) {
  write("tw");
  EXPECT_EQ(read([&](int wait) {
              if (wait < 3) write(wait == 1 ? "" : "two\n");
            }),
            "two");
  EXPECT_EQ(waits_, 3) << "half, empty, whole, and whole again";
}

TEST_F(SecretFile, AnEmptyOneMayBeInTheMiddleOfAWrite) {
  write("");
  EXPECT_EQ(read([&](int wait) {
              if (wait == 1) write("two");
            }),
            "two");
  write("");
  EXPECT_EQ(read(), "secret file " + path() + " is empty");
}

TEST_F(SecretFile, OneThatNobodyIsWritingIsReadAtOnce) {
  write("two", seconds(2));
  EXPECT_EQ(read(), "two");
  EXPECT_EQ(waits_, 0);
  fs::rename(path(), folder_.file("fresh"));
  write("three");
  fs::rename(folder_.file("fresh"), path());
  EXPECT_EQ(read(), "two") << "replaced by rename a moment ago";
  EXPECT_EQ(waits_, 0);
  fs::remove(path());
  EXPECT_THAT(read(), HasSubstr("cannot be read: No such file or directory"));
  EXPECT_EQ(waits_, 0);
}

TEST_F(SecretFile, AClockThatIsAheadKeepsNothing) {
  write("two", seconds(-3600));
  EXPECT_EQ(read(), "two");
  EXPECT_EQ(waits_, 1);
}

TEST_F(SecretFile, OneThatIsNeverTheSameIsRefusedAfterAWhile) {
  write("");
  EXPECT_EQ(read([&](int wait) { write(std::string(static_cast<std::size_t>(wait), 'x')); }),
            "secret file " + path() + " is being written: it is never the same for 250 ms");
  EXPECT_EQ(waits_, kMaxSettleTime / kSettleTime);
}

}  // namespace
}  // namespace driftd::config
