// SPDX-License-Identifier: Apache-2.0
#include "check/registry.hpp"

#include <gmock/gmock.h>

#include <regex>
#include <set>
#include <sstream>

#include "check/elf.hpp"
#include "check/report.hpp"
#include "support/process.hpp"

namespace driftd::check {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> ids(const Result<std::vector<Check>>& checks) {
  std::vector<std::string> out;
  for (const auto& check : checks.value_or(std::vector<Check>{})) out.emplace_back(check.id);
  return out;
}

TEST(Registry, HasAtLeastFiftyChecksInNineGroupsWithAnIdEach) {
  std::set<std::string> seen, groups;
  for (const auto& check : all_checks()) {
    EXPECT_TRUE(std::regex_match(check.id, std::regex("[a-z]+\\.[a-z_]+"))) << check.id;
    seen.insert(check.id);
    groups.insert(group_of(check));
  }
  EXPECT_EQ(seen.size(), all_checks().size());
  EXPECT_GE(seen.size(), 50u);
  EXPECT_EQ(groups.size(), 9u);
}

/// `| id | level | holds when |` of the page, in its order.
std::vector<std::string> rows_of_the_page(const std::string& page) {
  std::vector<std::string> out;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, std::regex(R"(\| (\w+\.\w+) \| (must|should) \| (.*) \| .* \|)"))) {
      out.push_back(found.str(1) + " " + found.str(2) + " " + found.str(3));
    }
  }
  return out;
}

TEST(Registry, ThePageAndTheListAgree) {
  std::vector<std::string> listed;
  for (const auto& check : all_checks())
    listed.push_back(std::string(check.id) + " " + render(check.level) + " " + check.title);
  EXPECT_EQ(rows_of_the_page(test::read_file(DRIFTD_SOURCE_DIR "/docs/driftd-check.md")), listed);
}

TEST(Registry, HasAtLeastSixtyChecksOfSinksWithAnIdEach) {
  std::set<std::string> seen;
  for (const auto& check : all_checks(PluginKind::sink)) {
    EXPECT_TRUE(std::regex_match(check.id, std::regex("[a-z]+\\.[a-z_]+"))) << check.id;
    seen.insert(check.id);
  }
  EXPECT_EQ(seen.size(), all_checks(PluginKind::sink).size());
  EXPECT_GE(seen.size(), 60u);
}

TEST(Registry, ThePageOfSinksAndTheListAgree) {
  std::vector<std::string> listed;
  for (const auto& check : all_checks(PluginKind::sink))
    listed.push_back(std::string(check.id) + " " + render(check.level) + " " + check.title);
  EXPECT_EQ(rows_of_the_page(test::read_file(DRIFTD_SOURCE_DIR "/docs/driftd-check-sinks.md")), listed);
}

/// A check that both kinds of plugin have is explained in the page of providers, unless that of sinks says more.
TEST(Registry, EachCheckOfSinksIsExplained) {
  const std::string providers = test::read_file(DRIFTD_SOURCE_DIR "/docs/driftd-check.md");
  const std::string sinks = test::read_file(DRIFTD_SOURCE_DIR "/docs/driftd-check-sinks.md");
  for (const auto& check : all_checks(PluginKind::sink)) {
    const std::string heading = std::string("\n### ") + check.id + "\n";
    const std::string& page = sinks.find(heading) == std::string::npos ? providers : sinks;
    const std::size_t at = page.find(heading);
    ASSERT_NE(at, std::string::npos) << check.id << " has no paragraph";
    const std::string paragraph = page.substr(at, page.find("\n#", at + 4) - at);
    EXPECT_THAT(paragraph, HasSubstr("*Why:*")) << check.id;
    EXPECT_THAT(paragraph, HasSubstr("*Fix:*")) << check.id;
  }
}

TEST(Registry, ThePageExplainsEachCheck) {
  const std::string page = test::read_file(DRIFTD_SOURCE_DIR "/docs/driftd-check.md");
  for (const auto& check : all_checks()) {
    const std::size_t at = page.find(std::string("\n### ") + check.id + "\n");
    ASSERT_NE(at, std::string::npos) << check.id << " has no paragraph";
    const std::string paragraph = page.substr(at, page.find("\n#", at + 4) - at);
    EXPECT_THAT(paragraph, HasSubstr("*Why:*")) << check.id;
    EXPECT_THAT(paragraph, HasSubstr("*Fix:*")) << check.id;
  }
}

TEST(Registry, OnlyTakesIdsAndGroupsInTheOrderOfTheList) {
  EXPECT_THAT(ids(select_checks(all_checks(), {"memory.page_end", "binary.loads", "memory.page_end"})),
              ElementsAre("binary.loads", "memory.page_end"));
  EXPECT_EQ(ids(select_checks(all_checks(), {"threads"})), ids(select_checks(all_checks(), {"threads.*"})));
  EXPECT_EQ(ids(select_checks(all_checks(), {"threads"})).size(), threads_checks().size());
  EXPECT_EQ(ids(select_checks(all_checks(), {})).size(), all_checks().size());
}

TEST(Registry, AnUnknownIdNamesTheNearest) {
  const auto checks = select_checks(all_checks(), {"memory.pageend"});
  ASSERT_FALSE(checks);
  EXPECT_EQ(checks.error().message,
            "--only memory.pageend: no check and no group has this name; did you mean `memory.page_end`?");
}

TEST(Registry, AWordThatIsLikeNothingPointsToTheList) {
  const auto checks = select_checks(all_checks(), {"xyzzyxyzzy"});
  ASSERT_FALSE(checks);
  EXPECT_THAT(checks.error().message, HasSubstr("`driftd-check --list` shows all"));
}

TEST(ElfReader, AFileThatIsNoneIsBrokenWithAReason) {
  const test::TempDir folder;
  for (const std::string& text : {std::string("no ELF"),
                                  std::string("\x7f"
                                              "ELF"),
                                  std::string(64, '\x7f'), std::string()}) {
    try {
      (void)read_elf(folder.write("x.so", text));
      ADD_FAILURE() << "taken: " << text;
    } catch (const RuleBroken& e) {
      EXPECT_THAT(e.what(), HasSubstr("expected a 64-bit ELF shared object"));
    }
  }
}

}  // namespace
}  // namespace driftd::check
