// SPDX-License-Identifier: Apache-2.0
// How `${exec:…}` is parsed. Errors with a position are tested in tests/golden/config.
#include <gmock/gmock.h>

#include <unistd.h>
#include <filesystem>

#include "config/config.hpp"
#include "config/registry.hpp"
#include "support/process.hpp"

namespace driftd::config {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> words(const std::string& text) {
  const auto split = split_command(text);
  EXPECT_TRUE(split) << split.error();
  return split.value_or(std::vector<std::string>{});
}

TEST(SplitWords, BlanksSeparateAndQuotesJoin) {
  EXPECT_THAT(words("/bin/a b\t c"), ElementsAre("/bin/a", "b", "c"));
  EXPECT_THAT(words("  /bin/a  "), ElementsAre("/bin/a"));
  EXPECT_THAT(words(""), IsEmpty());
  EXPECT_THAT(words("/bin/a 'b c' \"d e\" f'g h'i"), ElementsAre("/bin/a", "b c", "d e", "fg hi"));
  EXPECT_THAT(words("/bin/a '' \"\""), ElementsAre("/bin/a", "", ""));
  EXPECT_THAT(words(R"(/bin/a 'a\b"c' "a\"b\\c'd" a\ b\'c)"), ElementsAre("/bin/a", R"(a\b"c)", R"(a"b\c'd)", "a b'c"));
}

TEST(SplitWords, NothingIsExpanded) {
  EXPECT_THAT(words(R"(/bin/a $HOME ~ * {a,b} ${x} %s !1 #no a=b)"),
              ElementsAre("/bin/a", "$HOME", "~", "*", "{a,b}", "${x}", "%s", "!1", "#no", "a=b"));
}

TEST(SplitWords, WhatOnlyAShellUnderstandsIsAFaultUnlessQuoted) {
  for (const char* word : {"|", "||", "&&", "&", ";", ">out", "2>/dev/null", "<in", "$(id)", "`id`"}) {
    EXPECT_FALSE(split_command(std::string("/bin/a ") + word)) << word;
    EXPECT_THAT(words(std::string("/bin/a '") + word + "'"), ElementsAre("/bin/a", word));
  }
  EXPECT_THAT(words("/bin/a a|b --query=a>b"), ElementsAre("/bin/a", "a|b", "--query=a>b"));
}

class Programs : public testing::Test {
 protected:
  Programs() {
    fs::create_directory(folder_.path() / "bin");
    tool_ = folder_.write("bin/tool", "#!/bin/sh\necho canary\n");
    fs::permissions(tool_, fs::perms(0755));
  }
  Loaded load(const std::string& command, const std::string& entry = "", bool resolve = true) const {
    LoadOptions options;
    options.resolve_secrets = resolve;
    return parse("agent: { programs: [ { path: " + tool_ + entry +
                     " } ] }\nbackends: [ { name: a, provider: p, settings: { auth: { "
                     "token: '${exec:" +
                     command + "}' } } } ]\n",
                 folder_.file("f.yaml"), options);
  }
  std::string refusal() const {
    const auto loaded = load(tool_);
    return loaded ? std::string() : render(loaded.error());
  }
  test::TempDir folder_;
  std::string tool_;
};

TEST_F(Programs, AUseNamesItsSettingWordsAndLimitsAndNothingIsRun) {
  const auto loaded =
      load(tool_ + " get-token --filter \"{a: b}\"", ", env: [AWS_PROFILE, AWS_REGION=x], timeout: 5s, refresh: 1m");
  ASSERT_TRUE(loaded) << render(loaded.error());
  ASSERT_EQ(loaded->program_uses.size(), 1u);
  const ProgramUse& use = loaded->program_uses[0];
  EXPECT_EQ(use.backend, "a");
  EXPECT_EQ(use.setting, "auth.token");
  EXPECT_THAT(use.command, ElementsAre(tool_, "get-token", "--filter", "{a: b}"));
  EXPECT_THAT(use.program.environment, ElementsAre("AWS_PROFILE", "AWS_REGION=x"));
  EXPECT_EQ(use.program.timeout, milliseconds(5'000));
  EXPECT_EQ(use.program.refresh, milliseconds(60'000));
  const auto& spec = loaded->backends[0];
  EXPECT_THAT(spec.settings_json, HasSubstr(use.token));
  EXPECT_THAT(spec.registration_json, HasSubstr("${exec:" + tool_));
  EXPECT_THAT(spec.secrets, IsEmpty());
  EXPECT_THAT(loaded->warnings, IsEmpty());
}

TEST_F(Programs, DefaultsAreTenSecondsAndFiveMinutes) {
  const auto loaded = load(tool_);
  ASSERT_TRUE(loaded) << render(loaded.error());
  EXPECT_EQ(loaded->program_uses[0].program.timeout, milliseconds(10'000));
  EXPECT_EQ(loaded->program_uses[0].program.refresh, milliseconds(300'000));
}

TEST_F(Programs, AFileThatOthersMayWriteIsRefused) {
  fs::permissions(tool_, fs::perms(0757));
  EXPECT_THAT(refusal(), HasSubstr("is not run, because " + tool_ + " is writable by others (mode 0757)"));
}

TEST_F(Programs, AFolderThatOthersMayWriteIsRefused) {
  fs::permissions(folder_.path() / "bin", fs::perms(0777));
  EXPECT_THAT(refusal(), HasSubstr("bin is writable by others (mode 0777)"));
}

TEST_F(Programs, AStrangersFileBehindALinkIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "LOUD: only root gives files away, so this rule is not tested";
  fs::rename(tool_, folder_.file("bin/real"));
  fs::create_symlink("real", tool_);
  EXPECT_EQ(refusal(), "");
  ASSERT_EQ(::chown(folder_.file("bin/real").c_str(), 65534, 65534), 0);
  EXPECT_THAT(refusal(), HasSubstr("bin/real belongs to uid 65534"));
}

TEST_F(Programs, WithoutResolvingTheFileIsNotLookedAt) {
  fs::remove(tool_);
  EXPECT_THAT(refusal(), HasSubstr("No such file or directory"));
  EXPECT_TRUE(load(tool_, "", false));
}

TEST_F(Programs, SecretsInTheCommandOrTheEntryWarn) {
  const auto loaded = load(tool_ + " postgres://u:canary@h/", ", env: [API_TOKEN=canary]");
  ASSERT_TRUE(loaded) << render(loaded.error());
  EXPECT_EQ(loaded->warnings.size(), 2u);
  EXPECT_THAT(render(loaded->warnings), testing::Not(HasSubstr("canary")));
}

TEST_F(Programs, AReloadNamesAnotherCommandOrLimit) {
  const auto running = load(tool_ + " a");
  const auto edit = [&](const Config& next) {
    std::vector<std::string> what;
    const auto out = compare_backends(entries_of(*running).at(0), entries_of(next).at(0), what);
    EXPECT_EQ(what.empty(), out == core::BackendEdit::none);
    return out;
  };
  EXPECT_EQ(edit(*load(tool_ + " a")), core::BackendEdit::none);
  EXPECT_EQ(edit(*load(tool_ + " b")), core::BackendEdit::reopen);
  EXPECT_EQ(edit(*load(tool_ + " a", ", refresh: 1m")), core::BackendEdit::reopen);
  EXPECT_THAT(compare(*running, *load(tool_ + " b", ", refresh: 1m")).restart, IsEmpty());
}

}  // namespace
}  // namespace driftd::config
