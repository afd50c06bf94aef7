// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <regex>

#include "cli/exit_codes.hpp"
#include "command_result.hpp"
#include "support/process.hpp"

namespace driftd::cli {
namespace {

using test::read_file;
using test::TempDir;
using testing::HasSubstr;
namespace fs = std::filesystem;

class NewProvider : public testing::TestWithParam<std::string> {
 protected:
  CommandResult make(const std::string& name) const {
    return driftd({"new-provider", name, "--lang", GetParam(), "--dir", folder()});
  }
  std::string folder() const { return dir_.file("project"); }
  TempDir dir_;
};

TEST_P(NewProvider, BearsItsNameWhereverTheExampleSaysItsOwn) {
  ASSERT_EQ(make("acme-db").code, kOk);
  const std::regex own_name(R"((^|[^\w-])files($|[^\w-]))");
  bool named = false;
  for (const auto& entry : fs::recursive_directory_iterator(folder())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("files")) << entry.path();
    if (!entry.is_regular_file()) continue;
    const std::string text = read_file(entry.path());
    named = named || text.find("\"types\": [\"acme-db\"]") != std::string::npos ||
            text.find(R"(\"types\": [\"acme-db\"])") != std::string::npos;
    EXPECT_FALSE(std::regex_search(text, own_name)) << entry.path();
  }
  EXPECT_TRUE(named) << "its type is its name";
}

TEST_P(NewProvider, HasATestAReadmeAndTheSpecificationItIsBuiltFrom) {
  ASSERT_EQ(make("acme").code, kOk);
  EXPECT_EQ(read_file(folder() + "/include/driftd/provider.h"),
            read_file(DRIFTD_SOURCE_DIR "/plugin-api/include/driftd/provider.h"));
  EXPECT_THAT(read_file(folder() + "/Makefile"), HasSubstr("$(DRIFTD_CHECK) $(OUT)/acme.so"));
  EXPECT_TRUE(fs::exists(folder() + "/testdata/app.conf"));
  const std::string readme = read_file(folder() + "/README.md");
  for (const char* part : {"## Settings", "## Rights", "## Kinds", "## When something fails", "## Limits"}) {
    EXPECT_THAT(readme, HasSubstr(part));
  }
}

TEST_P(NewProvider, EndsWithTheNextCommands) {
  const CommandResult outcome = make("acme");
  EXPECT_THAT(outcome.out, HasSubstr("cd " + folder() + "\n"));
  for (const char* next : {"  make  ", "  make test  ", "  make install DIR="})
    EXPECT_THAT(outcome.out, HasSubstr(next));
}

TEST_P(NewProvider, LeavesAFolderAloneThatHasSomethingInIt) {
  fs::create_directory(folder());
  dir_.write("project/mine", "precious");
  const CommandResult outcome = make("acme");
  EXPECT_EQ(outcome.code, kFinding);
  EXPECT_THAT(outcome.err, HasSubstr("exists and is not empty: nothing was written"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 1);
}

INSTANTIATE_TEST_SUITE_P(In, NewProvider, testing::Values("c", "cpp", "rust", "go"),
                         [](const auto& language) { return language.param; });

TEST(NewProviderName, IsRefusedWithTheNearestGoodOne) {
  const std::pair<const char*, const char*> cases[] = {{"Acme", "try `acme`"},
                                                       {"my_db", "try `my-db`"},
                                                       {"9lives", "try `lives`"},
                                                       {"../etc", "try `etc`"},
                                                       {"a b--c", "try `a-b-c`"}};
  for (const auto& [name, hint] : cases) {
    const CommandResult outcome = driftd({"new-provider", name, "--lang", "c", "--dir", "/nonexistent"});
    EXPECT_EQ(outcome.code, kUsage) << name;
    EXPECT_THAT(outcome.err, HasSubstr(hint));
  }
  EXPECT_EQ(driftd({"new-provider", "42", "--lang", "c"}).code, kUsage);
  EXPECT_EQ(driftd({"new-provider", "acme", "--lang", "cobol"}).code, kUsage);
}

TEST(NewProviderName, FolderThatCannotBeMadeIsNamed) {
  const CommandResult outcome = driftd({"new-provider", "acme", "--lang", "c", "--dir", "/proc/acme"});
  EXPECT_EQ(outcome.code, kFinding);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write /proc/acme/"));
}

}  // namespace
}  // namespace driftd::cli
