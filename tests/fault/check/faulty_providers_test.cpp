// SPDX-License-Identifier: Apache-2.0
// Every check of driftd-check is broken by at least one faulty provider, and the sound provider breaks none.
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

const std::string kFaultyProviders = DRIFTD_BINARY_DIR "/tests/faulty_providers/";
constexpr std::chrono::minutes kLongest{4};
/// This check cannot be made under a sanitizer, because its malloc cannot be made to fail.
constexpr char kNeedsOwnMalloc[] = "memory.failing_allocations";

/// What driftd-check printed and returned.
struct Verdict {
  int code = -1;
  std::map<std::string, json> checks;  ///< by id
  std::string text;
};

/// Removes what the provider `lock_file` leaves behind when it is killed.
void remove_locks() {
  std::error_code ignored;  // another run may have removed it
  for (const auto& entry : fs::directory_iterator("/tmp")) {
    if (entry.path().filename().string().rfind("driftd-faulty-lock-", 0) == 0) fs::remove(entry.path(), ignored);
  }
}

/// Returns an environment in which sanitizers write their reports into a folder: a faulty provider is meant to cause
/// them.
std::map<std::string, std::string> sanitizer_environment(const TempDir& folder) {
  std::map<std::string, std::string> out;
  for (const char* options : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"})
    out[options] = "log_path=" + folder.file("report");
  return out;
}

/// Expects that each report of a sanitizer names a faulty provider, not only driftd-check.
void expect_reports_of_faulty_providers(const TempDir& folder) {
  for (const auto& report : fs::directory_iterator(folder.path())) {
    EXPECT_THAT(read_file(report.path().string()), ::testing::HasSubstr("tests/faulty_providers/"));
  }
}

/// Runs driftd-check on a faulty provider, only with the checks or groups `only`.
Verdict check(const std::string& provider, const std::vector<std::string>& only) {
  std::vector<std::string> command = {DRIFTD_BINARY_DIR "/bin/driftd-check", kFaultyProviders + provider + ".so",
                                      "--json", "--seed", "1"};
  for (const auto& id : only) command.insert(command.end(), {"--only", id});
  const TempDir reports;
  const Output done = run(command, sanitizer_environment(reports), kLongest * kPatience);
  expect_reports_of_faulty_providers(reports);
  if (provider == "lock_file") remove_locks();
  Verdict out{done.code, {}, done.out + done.err};
  const json report = json::parse(done.out, nullptr, false);
  if (!report.is_object()) return out;
  for (const auto& one : report["checks"]) out.checks[one["id"]] = one;
  return out;
}

TEST(CheckTable, NamesTheChecksOfTheProgramWithTheirLevels) {
  const Output listed = run({DRIFTD_BINARY_DIR "/bin/driftd-check", "--list", "--json"});
  std::map<std::string, std::string> program;
  std::map<std::string, std::string> page;
  for (const auto& one : json::parse(listed.out)) program[one["id"]] = one["level"];
  for (const auto& row : documented_checks()) page[row.id] = row.level;
  EXPECT_EQ(program, page);
  EXPECT_GE(program.size(), 50u);
}

TEST(CheckTable, EveryCheckHasAnAnimalAndEveryAnimalACheck) {
  for (const auto& row : documented_checks()) EXPECT_THAT(row.providers, ::testing::Not(IsEmpty())) << row.id;
  std::set<std::string> named(without_findings().begin(), without_findings().end());
  for (const auto& provider : providers()) named.insert(provider.name);
  std::set<std::string> built;
  for (const auto& entry : fs::directory_iterator(kFaultyProviders)) {
    if (entry.path().extension() == ".so") built.insert(entry.path().stem());
  }
  EXPECT_EQ(named, built);
}

class Breaks : public ::testing::TestWithParam<FaultyProvider> {};

TEST_P(Breaks, ItsCheckAndIsNamedWithTheReason) {
  const FaultyProvider& provider = GetParam();
  if (kSanitized && provider.breaks.contains(kNeedsOwnMalloc)) GTEST_SKIP() << "LOUD: a sanitizer's malloc cannot fail";
  std::vector<std::string> ids;
  bool breaks_must = false;
  for (const auto& [id, level] : provider.breaks) {
    ids.push_back(id);
    breaks_must = breaks_must || level == "must";
  }
  const std::string reason = reason_of(provider.name);
  ASSERT_FALSE(reason.empty()) << "add it to reasons.cpp";
  const Verdict verdict = check(provider.name, ids);
  for (const auto& id : ids) {
    ASSERT_TRUE(verdict.checks.contains(id)) << id << ": " << verdict.text;
    EXPECT_EQ(verdict.checks.at(id)["result"], "broken") << verdict.checks.at(id).dump(2);
    EXPECT_THAT(verdict.checks.at(id)["reason"].get<std::string>(), ::testing::HasSubstr(reason))
        << verdict.checks.at(id).dump(2);
  }
  EXPECT_EQ(verdict.code, breaks_must ? 1 : 0) << verdict.text;
}

INSTANTIATE_TEST_SUITE_P(Animals, Breaks, ::testing::ValuesIn(providers()),
                         [](const auto& info) { return info.param.name; });

TEST(SecretBlind, AnAllocationInsideUseFailsToo) {
  const TempDir folder;
  const Output done =
      run({DRIFTD_BINARY_DIR "/bin/driftd-check", kFaultyProviders + "secret_blind.so", "--only",
           "memory.failing_allocations", "--settings", folder.write("s.yaml", "password: p-1234567890\n")},
          {}, kLongest * kPatience);
  EXPECT_THAT(done.out, ::testing::AnyOf(::testing::ContainsRegex("killed by signal 11 .*allocation [0-9]+ failed"),
                                         ::testing::HasSubstr("a sanitizer's malloc")));
}

/// The provider is sound, but the system that it reads changes fifty times a second. That is not the provider's fault.
TEST(NeverStill, IsAccusedOfNothingThatTheSystemDoes) {
  const Verdict verdict = check("never_still", {"threads.concurrent", "chaos.kill", "chaos.jail", "chaos.sequence"});
  EXPECT_EQ(verdict.checks.size(), 4u) << verdict.text;
  for (const auto& [id, one] : verdict.checks) {
    // The check is made whole, or the reason why not is the system.
    // It is named less exactly if the system stood still at the moment of the second look.
    const std::string reason = one["reason"].is_string() ? one["reason"].get<std::string>() : "";
    const bool not_made =
        one["result"] == "not_made" && (reason.starts_with("the system changes while it is looked at") ||
                                        reason.starts_with("two plain refreshes differ"));
    EXPECT_TRUE(one["result"] == "passed" || not_made) << one.dump(2);
  }
  EXPECT_THAT(verdict.code, ::testing::AnyOf(0, 3)) << verdict.text;
}

/// A TLS library writes to a peer that has gone. The write fails with EPIPE, as in a worker, and does not end the
/// process.
TEST(BrokenPipe, IsNoDeathOfTheProvider) {
  const Verdict verdict = check("broken_pipe", {"threads.concurrent", "threads.process_state"});
  EXPECT_EQ(verdict.checks.size(), 2u) << verdict.text;
  for (const auto& [id, one] : verdict.checks) EXPECT_EQ(one["result"], "passed") << one.dump(2);
}

/// Returns the groups of checks: what precedes the dot of an id.
std::vector<std::string> groups() {
  std::set<std::string> out;
  for (const auto& row : documented_checks()) out.insert(row.id.substr(0, row.id.find('.')));
  return {out.begin(), out.end()};
}

class Passes : public ::testing::TestWithParam<std::string> {
 protected:
  /// Expects that each check of the group has one of these results. Those in `not_applicable` may be not applicable.
  void expect_all(const std::string& provider, const std::set<std::string>& results,
                  const std::set<std::string>& not_applicable = {}) {
    const Verdict verdict = check(provider, {GetParam()});
    ASSERT_THAT(verdict.checks, ::testing::Not(IsEmpty())) << verdict.text;
    for (const auto& [id, one] : verdict.checks) {
      const bool left_out = not_applicable.contains(id) && one["result"] == "not_applicable";
      const bool not_made = kSanitized && id == kNeedsOwnMalloc && one["result"] == "not_made";
      EXPECT_TRUE(left_out || not_made || results.contains(one["result"])) << one.dump(2);
    }
    EXPECT_EQ(verdict.code, 0) << verdict.text;
  }
};

TEST_P(Passes, TheSoundProviderWithAllThatItOffers) { expect_all("sound", {"passed", "not_applicable"}); }
/// It has no network peer, so one more check is not applicable. `black_hole` and our own providers have one.
TEST_P(Passes, TheSoundProviderWithAllExtensions) { expect_all("sound_extended", {"passed"}, {"deadline.black_hole"}); }

INSTANTIATE_TEST_SUITE_P(Groups, Passes, ::testing::ValuesIn(groups()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace driftd::test
