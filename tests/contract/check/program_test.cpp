// SPDX-License-Identifier: Apache-2.0
// The command line of driftd-check: its exit codes, its reports, and how it refuses wrong arguments.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/process.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string faulty_provider(const std::string& name) {
  return std::string(DRIFTD_BINARY_DIR "/tests/faulty_providers/") + name + ".so";
}

Output check(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), DRIFTD_BINARY_DIR "/bin/driftd-check");
  return run(arguments, {}, std::chrono::minutes(4));
}

/// Returns the JSON report of a run. The value is discarded if the output is not valid JSON.
json report(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const Output done = check(std::move(arguments));
  return json::parse(done.out, nullptr, false);
}

const char* const kQuickGroups[] = {"binary", "negotiation", "memory", "threads"};

/// Returns the arguments that check `file` with the groups that take little time.
std::vector<std::string> quick_check_of(const std::string& file) {
  std::vector<std::string> out{file};
  for (const char* group : kQuickGroups) out.insert(out.end(), {"--only", group});
  return out;
}

TEST(DriftdCheck, ASoundProviderPassesAndTheRunEndsWithItsSums) {
  const Output done = check(quick_check_of(faulty_provider("sound")));
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, StartsWith("check "));
  EXPECT_THAT(done.out, HasSubstr(" 0 broken (0 must, 0 should), "));
}

TEST(DriftdCheck, ABrokenMustIsOne) {
  const Output done = check({faulty_provider("segfault"), "--only", "refresh.works"});
  EXPECT_EQ(done.code, 1) << done.out << done.err;
  // A sanitizer in the provider aborts instead.
  EXPECT_THAT(done.out, AnyOf(HasSubstr("killed by signal 11 (Segmentation fault) (refresh"),
                              HasSubstr("killed by signal 6 (Aborted) (refresh")));
}

TEST(DriftdCheck, ABrokenShouldIsZero) {
  const Output done = check({faulty_provider("no_relro"), "--only", "binary.relro"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("binary.relro  should  broken"));
}

TEST(DriftdCheck, WithoutTheSettingsThatAreRequiredChecksAreNotMade) {
  const Output done = check({DRIFTD_EXAMPLE, "--only", "memory.open_close"});
  EXPECT_EQ(done.code, 3) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("needs --settings FILE: `path`, `key` are required"));
}

TEST(DriftdCheck, SettingsFromAFileOpenIt) {
  const TempDir folder;
  (void)folder.write("one.conf", "text");
  const std::string settings =
      folder.write("settings.yaml", "path: " + folder.path().string() + "\nkey: k-1234567890\n");
  std::vector<std::string> arguments = quick_check_of(DRIFTD_EXAMPLE);
  arguments.insert(arguments.end(), {"--settings", settings});
  const Output done = check(arguments);
  EXPECT_EQ(done.code, 0) << done.out << done.err;
}

TEST(DriftdCheck, WrongSettingsAreRefusedBeforeAnyCheck) {
  const TempDir folder;
  const Output done = check({DRIFTD_EXAMPLE, "--settings", folder.write("s.yaml", "path: 5\nkeyy: x\n")});
  EXPECT_EQ(done.code, 2);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr("settings.keyy: unknown setting; did you mean `key`?"));
}

TEST(DriftdCheck, AProviderWhoseSchemaCannotBeAskedIsCheckedAllTheSame) {
  const json done = report({faulty_provider("describe_crashes"), "--only", "binary"});
  EXPECT_EQ(done["sums"]["broken_must"], 0) << done.dump(2);
}

TEST(DriftdCheck, AnUnknownCheckAndAMissingFileAreWrongCommandLines) {
  EXPECT_EQ(check({faulty_provider("sound"), "--only", "memory.pageend"}).code, 2);
  EXPECT_EQ(check({"no-such-file.so"}).code, 2);
  EXPECT_EQ(check({}).code, 2);
  EXPECT_EQ(check({faulty_provider("sound"), "--json", "--junit"}).code, 2);
}

Output shell(const std::string& command) { return run({"sh", "-c", command}, {}, std::chrono::minutes(4)); }
const char* const kProgram = DRIFTD_BINARY_DIR "/bin/driftd-check ";

TEST(DriftdCheck, AReportThatCannotBeWrittenIsTwo) {
  const std::string command = kProgram + faulty_provider("sound") + " --only binary.entry --json ";
  const Output full = shell(command + "> /dev/full");
  EXPECT_EQ(full.code, 2);
  EXPECT_THAT(full.err, HasSubstr("could not be written to standard output: No space left on device"));
  const Output closed = shell(command + ">&-");
  EXPECT_EQ(closed.code, 2);
  EXPECT_THAT(closed.err, HasSubstr("standard output is closed"));
}

TEST(DriftdCheck, ASignalEndsTheRunWithTheReportOfWhatIsThere) {
  const Output done =
      shell(kProgram + faulty_provider("blocks_in_close") +
            " --only binary.entry --only deadline.close --only schema.describe --json & "
            "pid=$!; while kill -0 $pid && ! ps --ppid $pid > /dev/null; do :; done; kill -TERM $pid; wait $pid");
  EXPECT_EQ(done.code, 3) << done.err;
  const json report = json::parse(done.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << done.out;
  EXPECT_EQ(report["checks"].size(), 3u);
  EXPECT_THAT(report["checks"][2]["reason"].get<std::string>(), HasSubstr("SIGTERM"));
}

TEST(DriftdCheck, FewDescriptorsAccuseNobodyAndTooFewAreSaid) {
  const std::string command = kProgram + faulty_provider("sound") + " --only binary --only negotiation";
  EXPECT_EQ(shell("ulimit -Sn 512; " + command).code, 0);
  const Output few = shell("ulimit -n 64; " + command);
  EXPECT_EQ(few.code, 2);
  EXPECT_THAT(few.err, HasSubstr("the limit of open files: expected at least 256, found 64; raise it"));
}

TEST(DriftdCheck, AFolderForSettingsAndASeedThatIsNoneAreNamed) {
  const Output folder = check({faulty_provider("sound"), "--settings", "/tmp"});
  EXPECT_EQ(folder.code, 2);
  EXPECT_THAT(folder.err, HasSubstr("--settings /tmp: cannot be read: it is a folder; give a file"));
  for (const char* seed : {"-1", "99999999999999999999", "1x"}) {
    const Output wrong = check({faulty_provider("sound"), std::string("--seed=") + seed});
    EXPECT_EQ(wrong.code, 2) << seed;
    EXPECT_THAT(wrong.err, HasSubstr("expected a whole number from 0 to 18446744073709551615")) << seed;
  }
}

TEST(DriftdCheck, AFolderThatOthersMayWriteIsNoFaultOfTheProvider) {
  const TempDir folder;
  const std::string file = folder.file("sound.so");
  std::filesystem::copy_file(faulty_provider("sound"), file);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0777));
  const json done = report({file, "--only", "chaos.jail"});
  EXPECT_NE(done["checks"][0]["result"], "broken") << done.dump(2);
}

TEST(DriftdCheck, TheSeedIsTheOneGivenAndElseAnotherEachTime) {
  const std::vector<std::string> once{faulty_provider("sound"), "--only", "binary.entry"};
  std::vector<std::string> seeded = once;
  seeded.insert(seeded.end(), {"--seed", "77"});
  EXPECT_EQ(report(seeded)["seed"], 77);
  EXPECT_NE(report(once)["seed"], report(once)["seed"]);
}

TEST(DriftdCheck, ListShowsAllAndRunsNothing) {
  const Output done = check({"--list"});
  EXPECT_EQ(done.code, 0);
  EXPECT_THAT(done.out, HasSubstr("memory.page_end"));
  EXPECT_GE(json::parse(check({"--list", "--json"}).out).size(), 50u);
}

TEST(DriftdCheck, JUnitIsWellFormed) {
  const TempDir folder;
  const std::string xml = folder.write(
      "report.xml", check({faulty_provider("segfault"), "--only", "refresh.works", "--only", "binary", "--junit"}).out);
  const Output parsed =
      run({DRIFTD_PYTHON, "-c",
           "import sys, xml.etree.ElementTree as t; s = t.parse(sys.argv[1]).getroot().find('testsuite'); "
           "print(s.get('failures'), len(s.findall('testcase')), len(s.findall('testcase/failure')))",
           xml});
  EXPECT_EQ(parsed.out, "1 12 1\n") << parsed.err;
}

}  // namespace
}  // namespace driftd::test
