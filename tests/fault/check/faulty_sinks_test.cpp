// SPDX-License-Identifier: Apache-2.0
// Every check of driftd-check for sinks is broken by at least one faulty sink, and the sound sink breaks none.
#include <gmock/gmock.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "support/patience.hpp"
#include "support/process.hpp"
#include "table.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::IsEmpty;

const std::string kFaultySinks = DRIFTD_BINARY_DIR "/tests/checked_sinks/";
constexpr std::chrono::minutes kLongestSinkRun{5};
/// These judge the heap of the process, or fail its malloc, which a sanitizer replaces.
const std::set<std::string> kNeedOwnMalloc{"memory.failing_allocations"};

/// What driftd-check printed and returned.
struct SinkVerdict {
  int code = -1;
  std::map<std::string, json> checks;  ///< by id
  std::string text;
};

/// Removes what the sink `lock_file` leaves behind when it is killed.
void remove_sink_locks() {
  std::error_code ignored;  // another run may have removed it
  for (const auto& entry : fs::directory_iterator("/tmp")) {
    if (entry.path().filename().string().starts_with("driftd-faulty-sink-lock-")) fs::remove(entry.path(), ignored);
  }
}

/// Runs driftd-check on a faulty sink, only with the checks or groups `only`.
SinkVerdict check_sink(const std::string& sink, const std::vector<std::string>& only) {
  const TempDir folder;
  std::vector<std::string> command = {DRIFTD_BINARY_DIR "/bin/driftd-check",
                                      kFaultySinks + sink + ".so",
                                      "--sink",
                                      "--json",
                                      "--seed",
                                      "1",
                                      "--answer",
                                      R"(ok\n)",
                                      "--settings",
                                      folder.write("settings.yaml", "address: 127.0.0.1:${tcp}\n")};
  for (const auto& id : only) command.insert(command.end(), {"--only", id});
  const Output done = run(command, {}, kLongestSinkRun * kPatience);
  if (sink == "lock_file") remove_sink_locks();
  SinkVerdict out{done.code, {}, done.out + done.err};
  const json report = json::parse(done.out, nullptr, false);
  if (!report.is_object()) return out;
  for (const auto& one : report["checks"]) out.checks[one["id"]] = one;
  return out;
}

TEST(SinkCheckTable, NamesTheChecksOfTheProgramWithTheirLevels) {
  const Output listed = run({DRIFTD_BINARY_DIR "/bin/driftd-check", "--sink", "--list", "--json"});
  std::map<std::string, std::string> program;
  std::map<std::string, std::string> page;
  for (const auto& one : json::parse(listed.out)) program[one["id"]] = one["level"];
  for (const auto& row : documented_checks("driftd-check-sinks.md")) page[row.id] = row.level;
  EXPECT_EQ(program, page);
  EXPECT_GE(program.size(), 60u);
}

TEST(SinkCheckTable, EveryCheckHasAFaultySinkAndEveryFaultySinkACheck) {
  for (const auto& row : documented_checks("driftd-check-sinks.md")) {
    EXPECT_THAT(row.providers, ::testing::Not(::testing::AnyOf(IsEmpty(), ::testing::Contains("")))) << row.id;
  }
  std::set<std::string> named{"sound"};
  for (const auto& sink : sinks()) named.insert(sink.name);
  std::set<std::string> built;
  for (const auto& entry : fs::directory_iterator(kFaultySinks)) {
    if (entry.path().extension() == ".so") built.insert(entry.path().stem());
  }
  EXPECT_EQ(named, built);
}

class SinkBreaks : public ::testing::TestWithParam<FaultyProvider> {};

TEST_P(SinkBreaks, ItsCheckAndIsNamedWithTheReason) {
  const FaultyProvider& sink = GetParam();
  const std::string reason = reason_of_sink(sink.name);
  ASSERT_FALSE(reason.empty()) << "add it to sink_reasons.cpp";
  std::vector<std::string> ids;
  bool breaks_must = false;
  for (const auto& [id, level] : sink.breaks) {
    if (kSanitized && kNeedOwnMalloc.contains(id)) GTEST_SKIP() << "LOUD: a sanitizer's malloc cannot fail";
    ids.push_back(id);
    breaks_must = breaks_must || level == "must";
  }
  const SinkVerdict verdict = check_sink(sink.name, ids);
  for (const auto& id : ids) {
    ASSERT_TRUE(verdict.checks.contains(id)) << id << ": " << verdict.text;
    EXPECT_EQ(verdict.checks.at(id)["result"], "broken") << verdict.checks.at(id).dump(2);
    EXPECT_THAT(verdict.checks.at(id)["reason"].get<std::string>(), ::testing::HasSubstr(reason))
        << verdict.checks.at(id).dump(2);
  }
  EXPECT_EQ(verdict.code, breaks_must ? 1 : 0) << verdict.text;
}

INSTANTIATE_TEST_SUITE_P(FaultySinks, SinkBreaks, ::testing::ValuesIn(sinks()),
                         [](const auto& info) { return info.param.name; });

/// Returns the groups of checks: what precedes the dot of an id.
std::vector<std::string> sink_groups() {
  std::set<std::string> out;
  for (const auto& row : documented_checks("driftd-check-sinks.md")) out.insert(row.id.substr(0, row.id.find('.')));
  return {out.begin(), out.end()};
}

class SinkPasses : public ::testing::TestWithParam<std::string> {};

TEST_P(SinkPasses, TheSoundSink) {
  const SinkVerdict verdict = check_sink("sound", {GetParam()});
  ASSERT_THAT(verdict.checks, ::testing::Not(IsEmpty())) << verdict.text;
  for (const auto& [id, one] : verdict.checks) {
    const bool not_made = kSanitized && kNeedOwnMalloc.contains(id) && one["result"] == "not_made";
    EXPECT_TRUE(not_made || one["result"] == "passed") << one.dump(2);
  }
  EXPECT_EQ(verdict.code, 0) << verdict.text;
}

INSTANTIATE_TEST_SUITE_P(Groups, SinkPasses, ::testing::ValuesIn(sink_groups()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace driftd::test
