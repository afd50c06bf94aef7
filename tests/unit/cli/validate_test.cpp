// SPDX-License-Identifier: Apache-2.0
// `driftd validate`: every mistake is printed with its place, plugins check their settings, and warnings are mistakes
// only with --strict.
#include <gmock/gmock.h>

#include "cli/exit_codes.hpp"
#include "command_result.hpp"
#include "support/process.hpp"

namespace driftd::cli {
namespace {

using test::TempDir;
using testing::HasSubstr;

TEST(Cli, ValidatePrintsEveryMistakeWithItsPlace) {
  const TempDir folder;
  const std::string file = folder.write("d.yaml", "agnet: {}\nlog: { level: loud }\n");
  const CommandResult outcome = driftd({"validate", file});
  EXPECT_EQ(outcome.code, kConfig);
  EXPECT_THAT(outcome.err, HasSubstr("d.yaml:1:1: unknown key 'agnet'"));
  EXPECT_THAT(outcome.err, HasSubstr("d.yaml:2:15:"));
  EXPECT_THAT(outcome.err, HasSubstr("2 mistakes"));
  EXPECT_THAT(driftd({"-o", "json", "validate", file}).out, HasSubstr("\"valid\":false"));
}

TEST(Cli, ValidateAsksThePluginsAboutSettings) {
  const TempDir folder;
  const std::string file = folder.write("d.yaml", "backends: [ { name: a, provider: redis } ]\n");
  const CommandResult valid = driftd({"validate", file});
  EXPECT_EQ(valid.code, kOk);
  EXPECT_THAT(valid.out, HasSubstr("valid, 1 backend, 0 sinks, 0 routes"));
  Hooks hooks;
  hooks.check_config = [](const config::Config& config) {
    return app::CheckReport{{{config.file, config.backend_settings_at.at("a"), "no 'endpoint'", "", "", ""}}, {}};
  };
  const CommandResult outcome = driftd({"validate", file}, hooks);
  EXPECT_EQ(outcome.code, kConfig);
  EXPECT_THAT(outcome.err, HasSubstr("d.yaml:1:13: no 'endpoint'"));
}

TEST(Cli, APluginThatIsMissingIsAMistakeOnlyWhereThatWasAsked) {
  const TempDir folder;
  const std::string file = folder.write("d.yaml", "backends: [ { name: a, provider: redis } ]\n");
  Hooks hooks;
  hooks.check_config = [](const config::Config& config) {
    return app::CheckReport{
        {}, {{config.file, config.backend_settings_at.at("a"), "no plugin for provider 'redis'", "", "", ""}}};
  };
  const CommandResult lenient = driftd({"validate", file}, hooks),
                      strict = driftd({"validate", "--strict", file}, hooks);
  EXPECT_EQ(lenient.code, kOk);
  EXPECT_THAT(lenient.err, HasSubstr("no plugin for provider 'redis'"));
  EXPECT_EQ(strict.code, kConfig);
}

TEST(Cli, WhatLeftTheFileWithWorkUndoneIsAMistakeOnlyWhereThatWasAskedAndAStoreThatCannotBeReadNever) {
  const TempDir folder;
  const std::string file = folder.write("d.yaml", "backends: [ { name: a, provider: redis } ]\n");
  Hooks hooks;
  hooks.check_config = [](const config::Config& config) {
    app::CheckReport out;
    out.left = {{config.file, {}, "sink 'ops' is not in this file any more", "", "", ""}};
    out.notes = {{config.file, {}, "the store was not looked into: Permission denied", "", "", ""}};
    return out;
  };
  const CommandResult lenient = driftd({"validate", file}, hooks),
                      strict = driftd({"validate", "--strict", file}, hooks);
  EXPECT_EQ(lenient.code, kOk);
  EXPECT_THAT(lenient.err, HasSubstr("sink 'ops' is not in this file any more"));
  EXPECT_THAT(lenient.err, HasSubstr("the store was not looked into"));
  EXPECT_EQ(strict.code, kConfig);
  EXPECT_THAT(strict.err, HasSubstr("1 mistake\n"));
}

TEST(Cli, EveryWarningOfValidateIsMarkedAsOne) {
  const TempDir folder;
  const std::string file = folder.write("d.yaml", "backends: [ { name: a, provider: redis } ]\n");
  Hooks hooks;
  hooks.check_config = [](const config::Config& config) {
    app::CheckReport out;
    out.notes = {{config.file, {}, "the first", "", "", ""}, {config.file, {}, "the second", "", "", ""}};
    return out;
  };
  const CommandResult outcome = driftd({"validate", file}, hooks);
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_EQ(outcome.err, "warning: " + file + ": the first\nwarning: " + file + ": the second\n");
}

}  // namespace
}  // namespace driftd::cli
