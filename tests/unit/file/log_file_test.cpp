// SPDX-License-Identifier: Apache-2.0
#include "sinks/file/log_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <vector>

#include "support/patience.hpp"
#include "support/process.hpp"

namespace driftd::sinks {
namespace {

namespace fs = std::filesystem;
using test::read_file;

struct LogFileTest : testing::Test {
  test::TempDir dir;
  fs::path folder = dir.path() / "log";
  std::string path = (folder / "events.jsonl").string();
  LogFile file{FileSettings{path, 40, 3}};  // four lines of ten bytes

  LogFileTest() { fs::create_directory(folder); }
  std::string rotated(int n) const { return path + "." + std::to_string(n); }
  /// `line 0001` and its newline are ten bytes.
  static std::string line(int n) {
    const std::string number = std::to_string(n);
    return "line " + std::string(4 - number.size(), '0') + number;
  }
  std::string written(int n) {
    const Status done = file.write(line(n));
    return done ? "" : done.error().message;
  }
  std::string synced() {
    const Status done = file.sync();
    return done ? "" : done.error().message;
  }
  void write_and_sync(int from, int to) {
    for (int n = from; n <= to; ++n) ASSERT_EQ(written(n), "");
    ASSERT_EQ(synced(), "");
  }
};

TEST_F(LogFileTest, ALineThatAKillLeftHalfWrittenIsCut) {
  for (const std::string& torn : {std::string("line 00"), std::string(200'000, 'x')}) {
    std::ofstream(path) << line(1) << "\n" << torn;
    LogFile again{FileSettings{path, 1'000, 3}};
    ASSERT_TRUE(again.write(line(2)));
    EXPECT_EQ(read_file(path), line(1) + "\n" + line(2) + "\n");
    std::ofstream(path) << torn;
    LogFile of_one{FileSettings{path, 1'000, 3}};
    ASSERT_TRUE(of_one.write(line(3)));
    EXPECT_EQ(read_file(path), line(3) + "\n");
  }
}

TEST_F(LogFileTest, AFifoOrADeviceIsNotRotated) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  write_and_sync(1, 9);
  EXPECT_TRUE(fs::is_fifo(path));
  EXPECT_FALSE(fs::exists(rotated(1)));
  std::string got(200, '\0');
  EXPECT_EQ(::read(reader, got.data(), got.size()), 90);
  ::close(reader);
}

/// More than a pipe takes at once, so that a line is written in part when the pipe is full.
std::string long_line(int n) { return std::string(10'000, static_cast<char>('a' + n)); }

/// Returns what is in the pipe now.
std::string drained(int reader) {
  std::string out(1 << 20, '\0');
  const ssize_t n = ::read(reader, out.data(), out.size());
  out.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return out;
}

TEST_F(LogFileTest, AFifoThatNobodyReadsHoldsNobodyAndItsLinesStayWhole) {
  using Clock = std::chrono::steady_clock;
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  int n = 0;
  const auto began = Clock::now();
  while (file.write(long_line(n))) ASSERT_LT(++n, 20);
  EXPECT_LT(Clock::now() - began, Stream::kPatience * 3 * test::kPatience);
  const auto again = Clock::now();
  const Status refused = file.write(long_line(n));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("nobody reads it"), std::string::npos) << refused.error().message;
  EXPECT_LT(Clock::now() - again, Stream::kPatience) << "that it stands is known by now";

  std::string got = drained(reader);
  ASSERT_TRUE(file.write(long_line(n))) << "the rest of it";
  ASSERT_TRUE(file.write(long_line(n + 1)));
  got += drained(reader);
  std::string expected;
  for (int i = 0; i <= n + 1; ++i) expected += long_line(i) + "\n";
  EXPECT_EQ(got.size(), expected.size());
  EXPECT_TRUE(got == expected) << "each line whole, and once";
  ::close(reader);
}

TEST_F(LogFileTest, AFileRemovedRightBeforeItsRotationIsMadeAnew) {
  write_and_sync(1, 4);
  fs::remove(path);
  EXPECT_EQ(written(5), "");
  EXPECT_EQ(synced(), "");
  EXPECT_EQ(read_file(path), "line 0005\n");
  EXPECT_FALSE(fs::exists(rotated(1))) << "there was nothing to rotate";
}

TEST_F(LogFileTest, AfterLinesThatWereNotSyncedBeforeTheFileWasRemovedComesNoOtherBeforeThem) {
  write_and_sync(1, 2);
  ASSERT_EQ(written(3), "");
  ASSERT_EQ(written(4), "");
  fs::remove(path);
  EXPECT_NE(written(5).find("was removed or renamed"), std::string::npos);  // a rotation would be due
  EXPECT_NE(synced().find("was removed or renamed"), std::string::npos);
  EXPECT_NE(written(5), "") << "until the others are written again";
  EXPECT_TRUE(file.lost());
  file.begin_again();
  write_and_sync(3, 5);
  EXPECT_EQ(read_file(path), "line 0003\nline 0004\nline 0005\n");
}

TEST_F(LogFileTest, AFileMovedRightBeforeItsRotationLeavesTheRotatedOnesWhereTheyAre) {
  write_and_sync(1, 8);
  ASSERT_EQ(read_file(rotated(1)).substr(0, 10), "line 0001\n");
  fs::rename(path, dir.file("moved"));
  EXPECT_EQ(written(9), "");
  EXPECT_EQ(read_file(path), "line 0009\n");
  EXPECT_EQ(read_file(rotated(1)).substr(0, 10), "line 0001\n");
  EXPECT_FALSE(fs::exists(rotated(2)));
}

TEST_F(LogFileTest, AFileOfSomebodyElseAtItsPathGetsTheNextLine) {
  write_and_sync(1, 1);
  fs::rename(path, dir.file("moved"));
  std::ofstream(path) << "theirs\n";
  EXPECT_EQ(written(2), "");
  EXPECT_EQ(read_file(path), "theirs\nline 0002\n");
  EXPECT_EQ(synced(), "");
}

TEST_F(LogFileTest, AFolderThatVanishesIsNamedAndWhenItReturnsItGoesOn) {
  write_and_sync(1, 2);
  ASSERT_EQ(written(3), "");
  fs::rename(folder, dir.file("away"));
  EXPECT_EQ(written(4), "open " + path + ": No such file or directory");
  EXPECT_EQ(written(4), "open " + path + ": No such file or directory");
  EXPECT_NE(synced(), "") << "line 3 is nowhere that a reader looks";
  fs::create_directory(folder);
  EXPECT_NE(written(4), "") << "line 3 is still to be written again";
  EXPECT_NE(synced(), "");
  file.begin_again();
  write_and_sync(3, 4);
  EXPECT_EQ(read_file(path), "line 0003\nline 0004\n");
}

TEST_F(LogFileTest, AFileThatSomebodyCutsIsNotRotatedByTheSizeItHad) {
  write_and_sync(1, 4);
  fs::resize_file(path, 0);
  EXPECT_EQ(written(5), "");
  EXPECT_EQ(read_file(path), "line 0005\n");
  EXPECT_FALSE(fs::exists(rotated(1)));
}

TEST_F(LogFileTest, ARotationThatCannotBeDoneLosesNoRotatedFileHoweverOftenItIsTried) {
  write_and_sync(1, 12);  // .2 holds 1 to 4, .1 5 to 8
  fs::create_directories(rotated(3) + "/in-the-way");
  for (int i = 0; i < 5; ++i) EXPECT_NE(written(13).find("rotate " + rotated(2)), std::string::npos);
  EXPECT_EQ(read_file(rotated(2)).substr(0, 10), "line 0001\n");
  EXPECT_EQ(read_file(rotated(1)).substr(0, 10), "line 0005\n");
  fs::remove_all(rotated(3));
  EXPECT_EQ(written(13), "");
  EXPECT_EQ(read_file(rotated(3)).substr(0, 10), "line 0001\n");
  EXPECT_EQ(read_file(path), "line 0013\n");
}

/// The state after a rotation that moved the rotated files but not the file itself.
TEST_F(LogFileTest, AGapThatAFailedRotationLeftIsFilledAndNothingIsPushedOverTheEnd) {
  write_and_sync(1, 16);  // .3 holds 1 to 4, .2 5 to 8, .1 9 to 12
  fs::remove(rotated(1));
  ASSERT_EQ(written(17), "");
  EXPECT_EQ(read_file(rotated(1)).substr(0, 10), "line 0013\n");
  EXPECT_EQ(read_file(rotated(2)).substr(0, 10), "line 0005\n");
  EXPECT_EQ(read_file(rotated(3)).substr(0, 10), "line 0001\n");
}

/// Somebody removes, moves, replaces and cuts the sink's file. What a sync has confirmed was in a file that a reader
/// could open at that time.
struct Vandal {
  explicit Vandal(LogFileTest& t, unsigned seed) : test(t), random(seed), file(FileSettings{t.path, 40, 500}) {}
  LogFileTest& test;
  std::minstd_rand random;
  LogFile file;
  int moved = 0, next = 1;
  std::set<int> pending;

  std::set<std::string> readable() const {
    std::set<std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(test.dir.path())) out.merge(lines_of(entry.path()));
    return out;
  }
  void write() {
    if (!file.write(LogFileTest::line(next))) return;
    pending.insert(next++);
    // synced by the rotation
    for (const auto& line : lines_of(test.rotated(1))) pending.erase(std::stoi(line.substr(5)));
  }
  static std::set<std::string> lines_of(const fs::path& path) {
    std::set<std::string> out;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) out.insert(line);
    return out;
  }
  void sync() {
    if (file.sync()) {
      const auto there = readable();
      for (const int n : pending) ASSERT_EQ(there.count(LogFileTest::line(n)), 1U) << n << " was vouched for";
      pending.clear();
    } else {
      file.begin_again();
      for (const int n : std::exchange(pending, {})) {
        if (file.write(LogFileTest::line(n))) pending.insert(n);
      }
    }
  }
  void step() {
    std::error_code ignored;
    switch (random() % 12) {
      case 0:
        fs::remove(test.path, ignored);
        break;
      case 1:
        fs::rename(test.path, test.dir.file("moved" + std::to_string(moved++)), ignored);
        break;
      case 2:
        fs::remove_all(test.folder, ignored);
        break;
      case 3:
        fs::create_directory(test.folder, ignored);
        break;
      case 4:
        sync();
        break;
      default:
        fs::create_directory(test.folder, ignored), write();
    }
  }
};

TEST_F(LogFileTest, ASyncNeverVouchesForALineThatNobodyCanRead) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Vandal vandal(*this, seed);
    vandal.next = static_cast<int>(seed) * 100;
    for (int i = 0; i < 90 && !HasFatalFailure(); ++i) vandal.step();
  }
}

}  // namespace
}  // namespace driftd::sinks
