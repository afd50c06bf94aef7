// SPDX-License-Identifier: Apache-2.0
#include "check/runner.hpp"

#include <gmock/gmock.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <regex>

#include "check/progress.hpp"
#include "support/process.hpp"

namespace driftd::check {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;

void wait_for_ever() {
  for (;;) (void)::poll(nullptr, 0, -1);
}

Outcome check_that(void (*run)(const Subject&), std::chrono::seconds limit = 60s) {
  return run_check({"group.name", Level::must, "it holds", limit, run}, {});
}

TEST(Runner, ACheckThatReturnsPassed) {
  const auto outcome = check_that([](const Subject&) {});
  EXPECT_EQ(outcome.ending, Ending::passed);
  EXPECT_EQ(outcome.text, "");
}

TEST(Runner, WhatTheWorkReturnsIsTheText) {
  EXPECT_EQ(run_in_child(60s, [] { return std::string(70'000, 'x'); }).text.size(), 70'000u);
}

TEST(Runner, ABrokenRuleIsToldInItsOwnWords) {
  const auto outcome = check_that([](const Subject&) { throw RuleBroken("expected this, found that"); });
  EXPECT_EQ(outcome.ending, Ending::broken);
  EXPECT_EQ(outcome.text, "expected this, found that");
}

TEST(Runner, WhatCannotBeMadeIsNotBroken) {
  const auto outcome = check_that([](const Subject&) { throw CheckNotMade("needs --settings FILE"); });
  EXPECT_EQ(outcome.ending, Ending::not_made);
  EXPECT_EQ(outcome.text, "needs --settings FILE");
}

TEST(Runner, WhatIsNotOfferedIsNotApplicable) {
  EXPECT_EQ(check_that([](const Subject&) { throw CheckNotApplicable("no watch"); }).ending, Ending::not_applicable);
}

TEST(Runner, AnUnexpectedExceptionIsBrokenWithItsText) {
  const auto outcome = check_that([](const Subject&) { throw std::logic_error("out of hand"); });
  EXPECT_EQ(outcome.ending, Ending::broken);
  EXPECT_THAT(outcome.text, EndsWith("out of hand"));
}

TEST(Runner, ACrashIsBrokenWithSignalAndPlace) {
  const auto outcome = check_that([](const Subject&) {
    set_progress("in the third refresh");
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
  });
  EXPECT_EQ(outcome.ending, Ending::broken);
  EXPECT_EQ(outcome.text, "killed by signal 11 (Segmentation fault) (in the third refresh)");
}

TEST(Runner, AnExitIsBrokenAlsoWithZero) {
  const auto outcome = check_that([](const Subject&) { ::_exit(0); });
  EXPECT_EQ(outcome.ending, Ending::broken);
  EXPECT_THAT(outcome.text, HasSubstr("exited with 0 in the middle of the check"));
}

TEST(Runner, TheLimitOfTimeIsBrokenWithThePlace) {
  const auto outcome = check_that(
      [](const Subject&) {
        set_progress("close");
        wait_for_ever();
      },
      1s);
  EXPECT_EQ(outcome.ending, Ending::broken);
  EXPECT_THAT(outcome.text, HasSubstr("not finished within the limit of"));
  EXPECT_THAT(outcome.text, HasSubstr("(close)"));
  EXPECT_GE(outcome.took, 1s);
}

TEST(Runner, WhatIsWrittenToStderrIsKeptUpToABound) {
  const auto outcome = check_that([](const Subject&) {
    for (int i = 0; i < 10'000; ++i) std::fputs("a line on stderr\n", stderr);
    std::fputs("the last words", stderr);
    throw RuleBroken("loud");
  });
  EXPECT_EQ(outcome.text, "loud");
  EXPECT_THAT(outcome.child_stderr, EndsWith("the last words"));
  EXPECT_LE(outcome.child_stderr.size(), 8u << 10);
}

TEST(Runner, AProcessThatTheProviderForkedGivesNoVerdict) {
  const auto outcome = check_that([](const Subject&) {
    if (::fork() == 0) return;  // the copy of this process would report success
    throw RuleBroken("the true verdict");
  });
  EXPECT_EQ(outcome.text, "the true verdict");
}

/// As a provider does that writes where it opened nothing.
void write_everywhere(const std::string& bytes) {
  for (int fd = 3; fd < 1024; ++fd) (void)!::write(fd, bytes.data(), bytes.size());
}

TEST(Runner, AVerdictThatTheProviderForgedIsBroken) {
  const auto outcome = check_that([](const Subject&) {
    write_everywhere(std::string(5, '\0'));
    ::_exit(0);
  });
  EXPECT_EQ(outcome.ending, Ending::broken);
  EXPECT_THAT(outcome.text, HasSubstr("descriptor"));
}

TEST(Runner, BytesThatAreNoVerdictAreBroken) {
  const auto outcome = check_that([](const Subject&) { write_everywhere(std::string("\x7f\0\0\0\0", 5)); });
  EXPECT_EQ(outcome.ending, Ending::broken);
}

TEST(Runner, AFewDescriptorsAccuseNobody) {
  const auto outcome = run_in_child(60s, [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 512;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    return std::string(render(run_in_child(60s, [] { return std::string(); }).ending));
  });
  EXPECT_EQ(outcome.text, "passed");
}

TEST(Runner, AProcessThatLeavesTheGroupIsKilledAndBroken) {
  const auto outcome = run_in_child(60s, [] {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setsid();
      wait_for_ever();
    }
    while (::getsid(pid) != pid) ::sched_yield();
    return std::string();
  });
  EXPECT_EQ(outcome.ending, Ending::broken);
  std::smatch found;
  ASSERT_TRUE(std::regex_search(outcome.text, found, std::regex("process ([0-9]+)"))) << outcome.text;
  EXPECT_NE(::kill(std::stoi(found.str(1)), 0), 0);
}

TEST(Runner, WhatAChildLeavesRunningIsKilled) {
  const auto outcome = run_in_child(60s, [] {
    if (::fork() == 0) wait_for_ever();
    return std::to_string(::getpgrp());
  });
  const pid_t group = std::stoi(outcome.text);
  EXPECT_TRUE(test::eventually([group] { return ::kill(-group, 0) != 0; }));
}

TEST(Runner, StdinAndStdoutOfACheckLeadNowhere) {
  const auto outcome = run_in_child(60s, [] {
    char byte = 0;
    return std::to_string(::read(0, &byte, 1)) + " " + std::to_string(::isatty(1)) + " " +
           std::to_string(::write(1, "x", 1));
  });
  EXPECT_EQ(outcome.text, "0 0 1");
}

}  // namespace
}  // namespace driftd::check
