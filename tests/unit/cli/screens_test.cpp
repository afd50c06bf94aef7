// SPDX-License-Identifier: Apache-2.0
// docs/what-differs.md shows what the commands really print, in 80 columns. DRIFTD_WRITE_PAGES=1 writes the page.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "command_result.hpp"
#include "core/judge/diff.hpp"
#include "core/value/schema.hpp"
#include "unit/admin/fake_agent.hpp"

namespace driftd::cli {
namespace {

using test::FakeAgent;
using test::TempDir;

const std::filesystem::path kPage = std::filesystem::path(DRIFTD_SOURCE_DIR) / "docs/what-differs.md";
constexpr const char* kHead =
    "# What differs, at one glance\n\nTen typical changes, as `driftd drifts` and `driftd diff` show them on a "
    "terminal of 80 columns. `~` is a value that changed, `-` and `+` are what was there "
    "and what is there now. Without `--show`, `driftd diff` withholds what is not known to be harmless "
    "([cli.md](cli.md)). This page is made by a "
    "test from the commands' own output.\n";

std::string content_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

core::Value load_screens() {
  auto value = core::parse(content_of(std::filesystem::path(DRIFTD_SOURCE_DIR) / "tests/unit/cli/screens.json"));
  EXPECT_TRUE(value) << (value ? "" : value.error().message);
  return value ? *value : core::Value(core::Value::Array{});
}

std::string member_text(const core::Value& value, std::string_view name) {
  const core::Value* found = value.find(name);
  return found != nullptr && found->string() != nullptr ? *found->string() : "";
}

/// Columns of a line: characters, not bytes.
std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

std::string schema_of(const core::Value& screen) {
  return core::render(core::Value::Object{{"schema", core::Value("driftd-schema/1")},
                                          {"dialect", core::Value(core::Value::Number{"2"})},
                                          {"kind", core::Value(member_text(screen, "kind"))},
                                          {"attributes", *screen.find("schema")}});
}

/// What an agent with this one open drift prints.
std::string drifts(const core::Value& screen) {
  const auto schema = core::KindSchema::parse(schema_of(screen));
  EXPECT_TRUE(schema) << (schema ? "" : schema.error().message);
  core::Drift drift = test::pending_drift("3f2a9c1d");
  drift.resource = {member_text(screen, "kind"), member_text(screen, "id")};
  drift.cls = core::ChangeClass::config;
  drift.changes = core::diff(*screen.find("old"), *screen.find("new"), **schema, {}).changes;
  FakeAgent agent;
  agent.reader()->open = {{drift, member_text(screen, "backend")}};
  return "$ driftd drifts\n" + driftd({"--socket", agent.socket(), "drifts"}).out;
}

/// What a command prints, behind the command as a person types it in the folder of the files.
std::string diff(const core::Value& screen) {
  const TempDir folder;
  const std::string named = member_text(screen, "schema");  // a schema of the package; else one of the screen's own
  const std::vector<std::string> files = {folder.write("old.json", core::render(*screen.find("old"))),
                                          folder.write("new.json", core::render(*screen.find("new"))),
                                          named.empty() ? folder.write("schema.json", schema_of(screen)) : named};
  std::vector<std::string> line{"diff"};
  for (const auto& word : *screen.find("words")->array()) line.push_back(*word.string());
  std::string shown = "$ driftd";
  for (const auto& word : line) shown += word == "**" ? " '**'" : " " + word;
  line.insert(line.end(), {"--schema", files[2], files[0], files[1]});
  const CommandResult result = driftd(line);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.code, 1) << result.out;
  return shown + " --schema " + (named.empty() ? "schema.json" : named) + " old.json new.json\n" + result.out;
}

TEST(Screens, ThePageShowsWhatTheCommandsPrintIn80Columns) {
  const core::Value screens = load_screens();
  std::string page = kHead;
  for (const auto& screen : *screens.array()) {
    const std::string shown = screen.find("words") == nullptr ? drifts(screen) : diff(screen);
    std::istringstream lines(shown);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), 80u) << line;
    page += "\n## " + member_text(screen, "title") + "\n```\n" + shown + "```\n";
  }
  EXPECT_GE(screens.array()->size(), 10u);
  if (std::getenv("DRIFTD_WRITE_PAGES") != nullptr) std::ofstream(kPage) << page;
  EXPECT_EQ(content_of(kPage), page) << "run this test with DRIFTD_WRITE_PAGES=1 and read the page";
}

}  // namespace
}  // namespace driftd::cli
