// SPDX-License-Identifier: Apache-2.0
// Whatever a plugin or a server wrote, it is one line of the log without control sequences.
#include "base/log.hpp"

#include <gmock/gmock.h>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace driftd::log {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHostile[] =
    "a\n2026-11-21T00:00:00.000Z info  app: FORGED\r\x1b]0;title\x07\x7f \xc2\x9b"
    "2J \xe2\x80\xae"
    "gnp.exe \xe2\x81\xa6 \x9b caf\xc3\xa9";

std::string logged(const std::string& format, const std::string& text) {
  Settings settings;
  settings.format = format;
  configure(settings);
  ::testing::internal::CaptureStderr();
  room("test").info("{}", text);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, ATextIsOneLineThatNoTerminalObeys) {
  const std::string line = logged("text", kHostile);
  EXPECT_THAT(
      line, EndsWith(R"( info  test: a\x0a2026-11-21T00:00:00.000Z info  app: FORGED\x0d\x1b]0;title\x07\x7f \u009b2J )"
                     R"(\u202egnp.exe \u2066 \x9b caf)"
                     "\xc3\xa9\n"));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST(Log, JsonSaysTheSameWithItsOwnEscapes) {
  const std::string line = logged("json", kHostile);
  for (const char* raw : {"\x7f", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x81\xa6", "\x1b"})
    EXPECT_THAT(line, Not(HasSubstr(raw)));
  const auto parsed = nlohmann::json::parse(line);
  EXPECT_THAT(parsed["message"].get<std::string>(), HasSubstr("FORGED\r\x1b]0;title\x07\x7f \xc2\x9b"
                                                              "2J \xe2\x80\xae"));
}

/// CLI commands log without configure(): a plugin must not reach the terminal of `driftd validate`.
TEST(LogDeathTest, WhatIsLoggedBeforeTheConfigIsReadIsNotObeyedEither) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, where nothing is configured
  EXPECT_EXIT(
      {
        room("host").warn("{}", "a\x1b]0;title\x07");
        std::exit(0);
      },
      testing::ExitedWithCode(0), "a.x1b.0;title.x07");
}

TEST(Log, OrdinaryTextStaysAsItIs) {
  EXPECT_THAT(logged("text", "topic “orders” — \xf0\x9f\x98\x80"),
              EndsWith(" info  test: topic “orders” — \xf0\x9f\x98\x80\n"));
}

}  // namespace
}  // namespace driftd::log
