// SPDX-License-Identifier: Apache-2.0
// Bad providers through `driftd run`: their own backends say why, the ones beside them keep their promise.
#include <sstream>

#include "support/naps.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

/// `reason` stands in `driftd status` and `driftd plugin ls` (of a worker that fails), or in the log and in `driftd
/// plugin ls` (of one that breaks a rule and goes on).
struct Beast {
  std::string name, reason, extra;
};

const std::vector<Beast> kFailing = {
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

/// Killed after some good refreshes, again and again: `driftd status` may have a good moment.
const std::vector<Beast> kSlow = {{"leaks_threads", "threads over the budget of 64", ", budgets: { threads: 64 }"}};

const std::vector<Beast> kMisbehaving = {
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

/// The jail says no to them, so their refresh fails: in `driftd status`, the log and `driftd plugin ls`.
const std::vector<Beast> kHeld = {
    {"fork_bomb", "refresh: Operation not permitted", ""},
    {"forks", "refresh: cannot start the process that does the work", ""},
    {"runs_programs", "refresh: cannot run /bin/true", ""},
};

/// Never opened: the scan of the folder says why, in the log and in `driftd plugin ls`.
const std::vector<Beast> kRefused = {
    {"constructor_exits", "exited with 7 in load", ""},
    {"describe_crashes", "killed by signal 6 (Aborted) in load", ""},
    {"wrong_version", "needs a host of ABI 1.3", ""},
    {"missing_symbol", "driftd_provider_v1", ""},
    {"half_watch", "half of extension driftd.watch/1", ""},
    {"null_slot", "is NULL inside the declared size", ""},
    {"writes_past_accept", "wrote behind the `size` of driftd_accept", ""},
    {"other_schema_each_time", "answered another text the second time", ""},
};

/// Harmless to the agent or only slow; nothing of theirs may reach the neighbours.
const std::vector<std::string> kQuiet = {"shouts",         "spinning_watch", "deaf_watch",    "blocks_in_close",
                                         "blocks_in_wake", "slow_health",    "leaks_refresh", "random_body",
                                         "miscounts",      "same_id_twice"};

class ZooLine : public testing::Test {
 protected:
  ZooLine() {
    redis_.grant_readme("redis-canary");
    std::string backends = redis_backend(redis_) + "    interval: 1s\n";
    backends += "  - { name: sound, provider: sound, interval: 1s }\n";
    for (const auto* list : {&kFailing, &kSlow, &kMisbehaving, &kHeld}) {
      for (const auto& beast : *list) add(backends, beast.name, beast.extra);
    }
    for (const auto& name : kQuiet) add(backends, name, "");
    agent_ = std::make_unique<Agent>(
        dir_, "defaults:\n  interval: 500ms\nbackends:\n" + backends + "sinks:\n  desk: { type: notifications }\n",
        std::map<std::string, std::string>{{"REDIS_PASSWORD", "redis-canary"}, {"ZOO_PASSWORD", "zoo-canary-17"}},
        std::vector<std::string>{Agent::build("providers"), Agent::build("tests/faulty_providers")});
  }
  static void add(std::string& backends, const std::string& name, const std::string& extra) {
    backends += "  - { name: " + name + ", provider: " + name + extra + " }\n";
  }
  std::string why(const std::string& backend) const {
    const auto row = agent_->backend(backend);
    if (!row) return "no such backend";
    return row->at("health").value("state", "") + ": " + row->at("health").value("reason", "");
  }
  std::int64_t cycles(const std::string& backend) const {
    return agent_->backend(backend)->at("cycles").get<std::int64_t>();
  }
  /// The row of a backend in `driftd plugin ls`; empty: none.
  std::string row_of(const std::string& plugins, const std::string& backend) const {
    std::istringstream lines(plugins);
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" " + backend + " ") != std::string::npos) return line;
    }
    return "";
  }
  /// One line of `text` holds both.
  static bool says(const std::string& text, const std::string& a, const std::string& b) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.find(a) != std::string::npos && line.find(b) != std::string::npos) return true;
    }
    return false;
  }
  void expect_told() {
    const std::string status = agent_->cli({"status"}).out;
    const std::string plugins = agent_->cli({"plugin", "ls"}).out;
    const std::string log = agent_->log();
    for (const auto& beast : kFailing) {
      EXPECT_THAT(status, HasSubstr(beast.reason)) << beast.name;
      EXPECT_THAT(row_of(plugins, beast.name), HasSubstr(beast.reason)) << plugins;
      EXPECT_THAT(log, HasSubstr("[" + beast.name + "] crashed")) << beast.name;
    }
    for (const auto& beast : kSlow) {
      EXPECT_THAT(row_of(plugins, beast.name), HasSubstr(beast.reason)) << plugins;
      EXPECT_TRUE(says(log, "[" + beast.name + "] budget", beast.reason)) << beast.name;
    }
    for (const auto& beast : kHeld) {
      EXPECT_THAT(status, HasSubstr(beast.reason)) << beast.name;
      EXPECT_THAT(row_of(plugins, beast.name), HasSubstr(beast.reason)) << plugins;
      EXPECT_TRUE(says(log, beast.name, beast.reason)) << beast.name;
    }
    for (const auto& beast : kMisbehaving) {
      EXPECT_THAT(row_of(plugins, beast.name), HasSubstr(beast.reason)) << plugins;
      EXPECT_THAT(log, HasSubstr("[" + beast.name + "] misbehaved")) << beast.name;
    }
    for (const auto& beast : kRefused) {
      for (const auto& said : {plugins, log}) {
        EXPECT_TRUE(says(said, beast.name + ".so", beast.reason)) << beast.name << " is not in\n" << said;
      }
    }
    EXPECT_THAT(log + plugins + status, testing::Not(HasSubstr("zoo-canary-17")));
  }
  bool told(const Beast& beast) const { return why(beast.name).find(beast.reason) != std::string::npos; }

  TempDir dir_;
  RedisServer redis_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(ZooLine, EachBadBackendSaysWhyAndTheOnesBesideItMissNoCycle) {
  agent_->start();
  ASSERT_TRUE(eventually([&] { return agent_->established({"cache", "sound"}); }, seconds(60))) << agent_->log();
  const std::int64_t before = cycles("cache"), sound_before = cycles("sound");
  const Naps naps;
  for (const auto& beast : kFailing) {
    EXPECT_TRUE(eventually([&] { return told(beast); }, seconds(60))) << beast.name << " says " << why(beast.name);
  }
  for (const auto& beast : kSlow) {
    EXPECT_TRUE(eventually([&] { return agent_->log().find(beast.reason) != std::string::npos; }, seconds(60)))
        << beast.name;
  }
  for (const auto& beast : kMisbehaving) {
    EXPECT_TRUE(eventually([&] { return agent_->log().find(beast.reason) != std::string::npos; }, seconds(60)))
        << beast.name;
  }
  ASSERT_TRUE(eventually([&] { return agent_->log().find("lines dropped") != std::string::npos; }, seconds(30)))
      << "100 MB of stderr arrived whole or not at all";
  // Ten promises of a second each are kept while all of them die again and again.
  ASSERT_TRUE(eventually([&] { return cycles("cache") >= before + 10; }, seconds(60)));
  const long promised = naps.seconds() - 1;
  EXPECT_GE(cycles("cache") - before, promised);
  EXPECT_GE(cycles("sound") - sound_before, promised);
  for (const auto* good : {"cache", "sound"}) {
    EXPECT_EQ(agent_->backend(good)->at("failures").get<std::int64_t>(), 0);
    EXPECT_TRUE(eventually([&] { return why(good) == "up: "; }, seconds(20))) << why(good);
  }
  expect_told();
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
