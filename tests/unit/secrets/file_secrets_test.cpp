// SPDX-License-Identifier: Apache-2.0
// Which secret file is read again, and when its content is accepted: the decision alone, from looks that the test
// gives.
#include "secrets/file_secrets.hpp"

#include <gmock/gmock.h>

namespace driftd::secrets {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(MustRead, AnotherFileOneThatCannotBeSeenAndOneThatWasRefused) {
  const config::FileMark was{1, 2, 3, 4, 5, true};
  EXPECT_FALSE(must_read(was, was, false));
  EXPECT_TRUE(must_read(was, was, true)) << "two writes within one tick of the clock leave one mark";
  EXPECT_TRUE(must_read(std::nullopt, was, false)) << "never read";
  EXPECT_TRUE(must_read(was, std::nullopt, false)) << "for the reason";
  for (auto member : {&config::FileMark::device, &config::FileMark::inode}) {
    auto now = was;
    ++(now.*member);
    EXPECT_TRUE(must_read(was, now, false));
  }
  for (auto member : {&config::FileMark::size, &config::FileMark::written_ns, &config::FileMark::changed_ns}) {
    auto now = was;
    ++(now.*member);
    EXPECT_TRUE(must_read(was, now, false));
  }
}

/// One file, looked at at given times: which content is accepted when.
class Settles : public testing::Test {
 protected:
  using Found = FileSecrets::Found;
  FileSecrets::FileChanges look(int at_ms, std::uint64_t inode, std::optional<Result<config::SecretText>> read) {
    const config::FileMark mark{1, inode, 3, 4, 5, true};
    if (read && *read) (*read)->mark = mark;
    return take({inode == 0 ? std::nullopt : std::optional(mark), at(at_ms), std::move(read)});
  }
  FileSecrets::FileChanges take(Found found) {
    std::vector<Found> all;
    all.push_back(std::move(found));
    return files_.apply(std::move(all));
  }
  static std::chrono::steady_clock::time_point at(int ms) {
    return std::chrono::steady_clock::time_point(std::chrono::hours(1)) + std::chrono::milliseconds(ms);
  }
  static Result<config::SecretText> text(const std::string& text) { return config::SecretText{text, {}}; }
  static Result<config::SecretText> gone() { return fail(Code::unavailable, "gone"); }
  bool marked() const { return files_.files_to_read()[0].was.has_value(); }
  FileSecrets files_{{{"orders", "password", "t", "/f"}}, {{"t", "one"}}};
};

TEST_F(Settles, WhatTwoLooksSawTheSameAQuarterOfASecondApart) {
  EXPECT_THAT(look(0, 1, text("two")).values, IsEmpty());
  EXPECT_TRUE(files_.unsettled());
  EXPECT_THAT(look(249, 1, text("two")).values, IsEmpty()) << "another cycle's look";
  EXPECT_THAT(look(250, 1, text("two")).values, testing::Contains(testing::Pair("t", "two")));
  EXPECT_FALSE(files_.unsettled());
  EXPECT_TRUE(marked());
}

TEST_F(Settles, EachOtherFileBeginsAnew) {
  look(0, 1, text("t"));
  EXPECT_THAT(look(300, 2, text("tw")).values, IsEmpty());
  EXPECT_THAT(look(549, 2, text("two")).values, IsEmpty());
  EXPECT_THAT(look(550, 2, text("two")).values, SizeIs(1));
}

TEST_F(Settles, AFileThatWasSwitchedBetweenTheLookAndTheReadIsLookedAtAgain) {
  look(0, 1, text("two"));
  const config::FileMark looked{1, 1, 3, 4, 5, true}, opened{1, 2, 3, 4, 5, true};
  EXPECT_THAT(take({looked, at(300), config::SecretText{"of another", opened}}).values, IsEmpty());
  EXPECT_TRUE(files_.unsettled());
}

TEST_F(Settles, WhatIsInUseIsNothingNewButItsMarkIsKeptOnceItHasSettled) {
  EXPECT_THAT(look(0, 1, text("one")).values, IsEmpty());
  EXPECT_FALSE(files_.unsettled()) << "nobody is in a hurry";
  EXPECT_FALSE(marked()) << "it may be written again within the same tick of the clock";
  look(300, 1, text("one"));
  EXPECT_TRUE(marked());
}

TEST_F(Settles, OneThatOthersMayReplaceLaterOnIsTakenAndTold) {
  auto open = text("one");
  open->rights.replaced = "/ belongs to uid 4321";
  const std::string line =
      "setting password: others may put another file in the place of secret file /f: / belongs to uid 4321";
  look(0, 1, text("one"));
  look(300, 1, text("one"));
  look(9'000, 2, open);
  EXPECT_THAT(look(9'300, 2, open).doubtful, ElementsAre(line));
  look(18'000, 3, open);
  EXPECT_THAT(look(18'300, 3, open).doubtful, IsEmpty()) << "once";
}

TEST_F(Settles, AFaultIsToldOnceItStandsAndStaysUntilAWholeFileIsThere) {
  EXPECT_THAT(look(0, 0, gone()).failing, IsEmpty());
  EXPECT_EQ(files_.fault(), "");
  EXPECT_THAT(look(300, 0, gone()).failing, ElementsAre("setting password: gone; what was read before stays in use"));
  EXPECT_THAT(look(600, 0, gone()).failing, IsEmpty());
  const auto half = look(9'000, 1, text("tw"));
  EXPECT_THAT(half.failing, IsEmpty());
  EXPECT_THAT(half.recovered, IsEmpty());
  EXPECT_TRUE(files_.unsettled()) << "it was the same before";
  EXPECT_THAT(look(9'300, 1, text("two")).recovered, SizeIs(1));
  EXPECT_EQ(files_.fault(), "");
}

TEST_F(Settles, OneThatIsWrittenAllTheTimeIsToldAndWaitsForTheNextCycle) {
  int at = 0;
  for (std::uint64_t inode = 1; at < 3'000; ++inode, at += 250) {
    EXPECT_THAT(look(at, inode, text(std::to_string(inode))).failing, IsEmpty());
    EXPECT_TRUE(files_.unsettled());
  }
  EXPECT_THAT(look(at, 99, text("99")).failing,
              ElementsAre("setting password: secret file /f is being written: it is never the same for 250 ms; what "
                          "was read before stays in use"));
  EXPECT_FALSE(files_.unsettled());
  EXPECT_THAT(look(at + 5'000, 99, text("99")).values, SizeIs(1));
  EXPECT_EQ(files_.fault(), "");
}

}  // namespace
}  // namespace driftd::secrets
