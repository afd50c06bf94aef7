// SPDX-License-Identifier: Apache-2.0
// Providers that misbehave, in a running agent: each of their backends says why it fails, and the good backends beside
// them miss no cycle.
#include <sstream>

#include "support/naps.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

/// A provider of tests/faulty_providers. `extra` is added to the configuration of its backend. The comment of each list
/// below says which outputs must contain `reason`.
struct BadProvider {
  std::string name, reason, extra;
};

/// Their worker or their call fails: `reason` is in `driftd status` and in `driftd plugin ls`.
const std::vector<BadProvider> kFailing = {
    {"segfault", "killed by signal 11 (Segmentation fault) in refresh", ""},
    {"abort", "killed by signal 6 (Aborted) in refresh", ""},
    {"exits", "exited with 0 in refresh", ""},
    {"stack_overflow", "killed by signal 11 (Segmentation fault) in refresh", ""},
    {"longjmp", "killed by signal 6 (Aborted) in refresh", ""},
    {"frees_host_memory", "killed by signal", ""},
    {"settings_crash", "killed by signal 6 (Aborted) in open", ", settings: { count: 5 }"},
    {"third_time_unlucky", "killed by signal 6 (Aborted) in refresh", ""},
    {"deadlock", "no answer within 1 s: killed in refresh", ", budgets: { call: 1s }"},
    {"hangs", "no answer within 1 s: killed in refresh", ", budgets: { call: 1s }"},
    {"slow_drip", "no answer within 1 s: killed in refresh", ", budgets: { call: 1s }"},
    {"leaks", "over the budget of 64 MiB", ", budgets: { rss: 64MiB }"},
    {"garbage", "wrote garbage to the protocol", ""},
};

/// Their worker is killed after some good refreshes, again and again, so `driftd status` may not show `reason` just
/// now: it is in the log and in `driftd plugin ls`.
const std::vector<BadProvider> kKilledLater = {
    {"leaks_threads", "threads over the budget of 64", ", budgets: { threads: 64 }"}};

/// They break a rule of the ABI and continue: `reason` is in the log and in `driftd plugin ls`.
const std::vector<BadProvider> kMisbehaving = {
    {"throws", "refresh: an exception crossed the ABI", ""},
    {"huge_body", "`body` has 5242880 bytes, at most 4194304", ""},
    {"nan_body", "`body`: JSON 1:23", ""},
    {"null_text", "`body` is NULL with a length", ""},
    {"invalid_utf8", "`id` is not UTF-8", ""},
    {"undeclared_kind", "kind `ghost` is not declared", ""},
    {"huge_cursor", "mark: the cursor is longer than 64 KiB", ""},
    {"huge_text", "diag: `text` has 16777216 bytes, at most 8192", ""},
    {"null_log", "log: the text is NULL with a length", ""},
    {"undeclared_metric", "metric: the name is not declared", ""},
    {"foreign_thread", "log: called on another thread than the call's own", ""},
    {"emits_after_return", "emit: stale or forged call handle", ""},
    {"asks_for_others", "secret: a token that was not minted for this instance", ""},
    {"calls_in_use", "log: called inside `use` of secret", ", settings: { password: \"${env:ZOO_PASSWORD}\" }"},
    {"writes_past", "refresh: wrote behind the `size` of its result", ""},
    {"changes_mask", "refresh: changed the signal mask", ""},
    {"changes_handlers", "refresh: changed the handler of signal 12", ""},
    {"changes_locale", "refresh: changed the locale from C to C.UTF-8", ""},
    {"changes_folder", "refresh: changed the working folder from / to /usr", ""},
    {"closes_std", "closed standard", ""},
    {"prints_stdout", "refresh: printed 11 bytes on standard output", ""},
    {"leaks_calls_descriptors", "of 1024 descriptors open", ""},
};

/// The jail stops what they try, so their refresh fails: `reason` is in `driftd status`, in the log and in `driftd
/// plugin ls`.
const std::vector<BadProvider> kStoppedByJail = {
    {"fork_bomb", "refresh: Operation not permitted", ""},
    {"forks", "refresh: cannot start the process that does the work", ""},
    {"runs_programs", "refresh: cannot run /bin/true", ""},
};

/// The scan of the folder refuses them, so no backend uses them: `reason` is in the log and in `driftd plugin ls`.
const std::vector<BadProvider> kRefused = {
    {"constructor_exits", "exited with 7 in load", ""},
    {"describe_crashes", "killed by signal 6 (Aborted) in load", ""},
    {"wrong_version", "needs a host of ABI 1.3", ""},
    {"missing_symbol", "driftd_provider_v1", ""},
    {"half_watch", "half of extension driftd.watch/1", ""},
    {"null_slot", "is NULL inside the declared size", ""},
    {"writes_past_accept", "wrote behind the `size` of driftd_accept", ""},
    {"other_schema_each_time", "answered another text the second time", ""},
};

/// They are harmless to the agent or only slow. They must not affect the good backends.
const std::vector<std::string> kHarmless = {"shouts",         "spinning_watch", "deaf_watch",    "blocks_in_close",
                                            "blocks_in_wake", "slow_health",    "leaks_refresh", "random_body",
                                            "miscounts",      "same_id_twice"};

class ZooLine : public testing::Test {
 protected:
  ZooLine() {
    redis_.grant_readme("redis-canary");
    std::string backends = redis_backend(redis_) + "    interval: 1s\n";
    backends += "  - { name: sound, provider: sound, interval: 1s }\n";
    for (const auto* list : {&kFailing, &kKilledLater, &kMisbehaving, &kStoppedByJail}) {
      for (const auto& provider : *list) add(backends, provider.name, provider.extra);
    }
    for (const auto& name : kHarmless) add(backends, name, "");
    agent_ = std::make_unique<Agent>(
        dir_, "defaults:\n  interval: 500ms\nbackends:\n" + backends + "sinks:\n  desk: { type: notifications }\n",
        std::map<std::string, std::string>{{"REDIS_PASSWORD", "redis-canary"}, {"ZOO_PASSWORD", "zoo-canary-17"}},
        std::vector<std::string>{Agent::build("providers"), Agent::build("tests/faulty_providers")});
  }
  static void add(std::string& backends, const std::string& name, const std::string& extra) {
    backends += "  - { name: " + name + ", provider: " + name + extra + " }\n";
  }
  /// Returns the state and the reason of a backend's health.
  std::string health(const std::string& backend) const {
    const auto row = agent_->backend(backend);
    if (!row) return "no such backend";
    return row->at("health").value("state", "") + ": " + row->at("health").value("reason", "");
  }
  std::int64_t cycles(const std::string& backend) const {
    return agent_->backend(backend)->at("cycles").get<std::int64_t>();
  }
  /// Returns the line of a backend in the output of `driftd plugin ls`. Empty if there is none.
  std::string row_of(const std::string& plugins, const std::string& backend) const {
    std::istringstream lines(plugins);
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" " + backend + " ") != std::string::npos) return line;
    }
    return "";
  }
  /// Returns true if one line of `text` contains both.
  static bool one_line_has(const std::string& text, const std::string& a, const std::string& b) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.find(a) != std::string::npos && line.find(b) != std::string::npos) return true;
    }
    return false;
  }
  /// Expects the reason of each bad provider in the outputs that the comment of its list names.
  void expect_reasons_in_outputs() {
    const std::string status = agent_->cli({"status"}).out;
    const std::string plugins = agent_->cli({"plugin", "ls"}).out;
    const std::string log = agent_->log();
    for (const auto& provider : kFailing) {
      EXPECT_THAT(status, HasSubstr(provider.reason)) << provider.name;
      EXPECT_THAT(row_of(plugins, provider.name), HasSubstr(provider.reason)) << plugins;
      EXPECT_THAT(log, HasSubstr("[" + provider.name + "] crashed")) << provider.name;
    }
    for (const auto& provider : kKilledLater) {
      EXPECT_THAT(row_of(plugins, provider.name), HasSubstr(provider.reason)) << plugins;
      EXPECT_TRUE(one_line_has(log, "[" + provider.name + "] budget", provider.reason)) << provider.name;
    }
    for (const auto& provider : kStoppedByJail) {
      EXPECT_THAT(status, HasSubstr(provider.reason)) << provider.name;
      EXPECT_THAT(row_of(plugins, provider.name), HasSubstr(provider.reason)) << plugins;
      EXPECT_TRUE(one_line_has(log, provider.name, provider.reason)) << provider.name;
    }
    for (const auto& provider : kMisbehaving) {
      EXPECT_THAT(row_of(plugins, provider.name), HasSubstr(provider.reason)) << plugins;
      EXPECT_THAT(log, HasSubstr("[" + provider.name + "] misbehaved")) << provider.name;
    }
    for (const auto& provider : kRefused) {
      for (const auto& output : {plugins, log}) {
        EXPECT_TRUE(one_line_has(output, provider.name + ".so", provider.reason)) << provider.name << " is not in\n"
                                                                                  << output;
      }
    }
    EXPECT_THAT(log + plugins + status, testing::Not(HasSubstr("zoo-canary-17")));
  }
  bool health_has_reason(const BadProvider& provider) const {
    return health(provider.name).find(provider.reason) != std::string::npos;
  }

  TempDir dir_;
  RedisServer redis_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(ZooLine, EachBadBackendSaysWhyAndTheOnesBesideItMissNoCycle) {
  agent_->start();
  ASSERT_TRUE(eventually([&] { return agent_->established({"cache", "sound"}); }, seconds(60))) << agent_->log();
  const std::int64_t before = cycles("cache"), sound_before = cycles("sound");
  const Naps naps;
  for (const auto& provider : kFailing) {
    EXPECT_TRUE(eventually([&] { return health_has_reason(provider); }, seconds(60)))
        << provider.name << " says " << health(provider.name);
  }
  for (const auto& provider : kKilledLater) {
    EXPECT_TRUE(eventually([&] { return agent_->log().find(provider.reason) != std::string::npos; }, seconds(60)))
        << provider.name;
  }
  for (const auto& provider : kMisbehaving) {
    EXPECT_TRUE(eventually([&] { return agent_->log().find(provider.reason) != std::string::npos; }, seconds(60)))
        << provider.name;
  }
  ASSERT_TRUE(eventually([&] { return agent_->log().find("lines dropped") != std::string::npos; }, seconds(30)))
      << "of 100 MB on stderr no line was dropped, or the log does not say so";
  // The good backends keep their interval of 1 s ten times while the workers of the bad ones die again and again.
  ASSERT_TRUE(eventually([&] { return cycles("cache") >= before + 10; }, seconds(60)));
  const long expected_cycles = naps.seconds() - 1;
  EXPECT_GE(cycles("cache") - before, expected_cycles);
  EXPECT_GE(cycles("sound") - sound_before, expected_cycles);
  for (const auto* good : {"cache", "sound"}) {
    EXPECT_EQ(agent_->backend(good)->at("failures").get<std::int64_t>(), 0);
    EXPECT_TRUE(eventually([&] { return health(good) == "up: "; }, seconds(20))) << health(good);
  }
  expect_reasons_in_outputs();
  EXPECT_TRUE(agent_->running());
  EXPECT_EQ(agent_->stop(), 0) << agent_->log();
  EXPECT_THAT(agent_->log(), HasSubstr("[blocks_in_close] misbehaved: did not return from close within"));
}

TEST_F(ZooLine, DriftOfTheGoodBackendIsStillSeenWithinItsInterval) {
  agent_->start();
  ASSERT_TRUE(eventually([&] { return agent_->established({"cache"}); }, seconds(60))) << agent_->log();
  EXPECT_TRUE(one_of(3, [&] {
    redis_.command({"CONFIG", "SET", "maxmemory", "64mb"});
    const bool seen = eventually([&] { return !agent_->rows({"drifts"}).empty(); }, seconds(2));
    redis_.command({"CONFIG", "SET", "maxmemory", "0"});
    const std::int64_t then = cycles("cache");
    EXPECT_TRUE(
        eventually([&] { return cycles("cache") >= then + 2 && agent_->rows({"drifts"}).empty(); }, seconds(60)));
    return seen;
  })) << agent_->log();
}

}  // namespace
}  // namespace driftd::test
