// SPDX-License-Identifier: Apache-2.0
#include "check/report.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace driftd::check {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

Finished finished(const char* id, Level level, Ending ending, std::string text = "", std::string child_stderr = "") {
  return {{id, level, "it holds", 20s, nullptr}, {ending, std::move(text), std::move(child_stderr), 1234ms}};
}

Run a_run() {
  return {"/lib/p.so",
          42,
          {"the schema is not known"},
          {finished("binary.loads", Level::must, Ending::passed),
           finished("memory.flat", Level::must, Ending::broken, "expected <0>, found \"1\"",
                    "free(): \x1b[31minvalid\xff\n"),
           finished("binary.relro", Level::should, Ending::broken, "lazy binding"),
           finished("refresh.works", Level::must, Ending::not_made, "needs --settings FILE"),
           finished("refresh.apply", Level::must, Ending::not_applicable, "not offered")}};
}

TEST(Report, TextShowsWhatBrokeThenTheTableThenTheSums) {
  EXPECT_EQ(render_text(a_run()),
            R"(memory.flat (must): it holds
    expected <0>, found "1"
  stderr:
    free(): \x1b[31minvalid?

binary.relro (should): it holds
    lazy binding

note: the schema is not known
check          level   result          time   reason
binary.loads   must    passed          1.23s
memory.flat    must    broken          1.23s  expected <0>, found "1"
binary.relro   should  broken          1.23s  lazy binding
refresh.works  must    not made        1.23s  needs --settings FILE
refresh.apply  must    not applicable  1.23s  not offered

5 checks: 1 passed, 2 broken (1 must, 1 should), 1 not made, 1 not applicable; seed 42
)");
}

TEST(Report, JsonHasEachCheckAndTheSums) {
  const json report = json::parse(render_json(a_run()));
  EXPECT_EQ(report["file"], "/lib/p.so");
  EXPECT_EQ(report["seed"], 42);
  EXPECT_EQ(report["checks"].size(), 5u);
  EXPECT_EQ(report["checks"][1], json({{"id", "memory.flat"},
                                       {"level", "must"},
                                       {"result", "broken"},
                                       {"seconds", 1.234},
                                       {"reason", "expected <0>, found \"1\""},
                                       {"stderr", "free(): \\x1b[31minvalid?\n"}}));
  EXPECT_EQ(report["checks"][3]["result"], "not_made");
  EXPECT_EQ(report["sums"],
            json({{"passed", 1}, {"broken", 2}, {"not_made", 1}, {"not_applicable", 1}, {"broken_must", 1}}));
  EXPECT_EQ(report["exit"], 1);
}

TEST(Report, JUnitFailsOnlyOnABrokenMust) {
  EXPECT_EQ(render_junit(a_run()),
            R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="5" failures="1" errors="0" skipped="3" time="6.170">
  <testsuite name="driftd-check /lib/p.so" tests="5" failures="1" errors="0" skipped="3" time="6.170">
    <properties>
      <property name="seed" value="42"/>
      <property name="note" value="the schema is not known"/>
    </properties>
    <testcase classname="binary" name="loads" time="1.234">
    </testcase>
    <testcase classname="memory" name="flat" time="1.234">
      <failure type="must" message="expected &lt;0&gt;, found &quot;1&quot;">expected &lt;0&gt;, found &quot;1&quot;</failure>
      <system-err>free(): \x1b[31minvalid?&#10;</system-err>
    </testcase>
    <testcase classname="binary" name="relro" time="1.234">
      <skipped message="should, broken: lazy binding"/>
    </testcase>
    <testcase classname="refresh" name="works" time="1.234">
      <skipped message="not made: needs --settings FILE"/>
    </testcase>
    <testcase classname="refresh" name="apply" time="1.234">
      <skipped message="not applicable: not offered"/>
    </testcase>
  </testsuite>
</testsuites>
)");
}

TEST(Report, WhatMovesACursorTurnsALineOrIsNoXmlIsEscaped) {
  EXPECT_EQ(safe("\xc2\x9b"
                 "31m"),
            "\\u{9b}31m");
  EXPECT_EQ(safe("a\xe2\x80\xae"
                 "b\xe2\x81\xa6"
                 "c\xe2\x80\xa8"),
            "a\\u{202e}b\\u{2066}c\\u{2028}");
  EXPECT_EQ(safe("\xef\xbf\xbf \xef\xbf\xbe \xef\xbf\xbd"), "\\u{ffff} \\u{fffe} \xef\xbf\xbd");
  EXPECT_EQ(safe("\x1b[m\x7f\r\t\n"), "\\x1b[m\\x7f\\x0d\t\n");
  EXPECT_EQ(safe("caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x92\xa9"), "caf\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x92\xa9");
}

TEST(Report, ABrokenMustIsOneEvenIfOthersWereNotMade) { EXPECT_EQ(exit_code(a_run()), 1); }

TEST(Report, ABrokenShouldIsNoReasonToFail) {
  EXPECT_EQ(exit_code({"p.so", 1, {}, {finished("a.b", Level::should, Ending::broken, "x")}}), 0);
}

TEST(Report, AMustThatWasNotMadeIsThree) {
  EXPECT_EQ(exit_code({"p.so", 1, {}, {finished("a.b", Level::must, Ending::not_made, "x")}}), 3);
}

TEST(Report, WhatIsNotOfferedLeavesZero) {
  EXPECT_EQ(exit_code({"p.so", 1, {}, {finished("a.b", Level::must, Ending::not_applicable, "x")}}), 0);
}

}  // namespace
}  // namespace driftd::check
