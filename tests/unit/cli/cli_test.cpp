// SPDX-License-Identifier: Apache-2.0
// The command line beside an agent and without one: the exit code of each command, and what it prints.
#include "cli/cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <csignal>
#include <sstream>
#include <thread>

#include "cli/exit_codes.hpp"
#include "cli/table.hpp"
#include "command_result.hpp"
#include "unit/admin/fake_agent.hpp"

namespace driftd::cli {
namespace {

using test::FakeAgent;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;

CommandResult ask(const FakeAgent& agent, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--socket", agent.socket()});
  return driftd(std::move(arguments));
}

TEST(Cli, UsageMistakesExitWith2) {
  EXPECT_EQ(driftd({}).code, kUsage);
  EXPECT_EQ(driftd({"statsu"}).code, kUsage);
  EXPECT_THAT(driftd({"statsu"}).err, HasSubstr("statsu"));
  EXPECT_EQ(driftd({"approve"}).code, kUsage);
  EXPECT_EQ(driftd({"-o", "xml", "status"}).code, kUsage);
  EXPECT_EQ(driftd({"--help"}).code, kOk);
}

TEST(Cli, NoAgentExitsWith69AndNamesTheSocket) {
  const CommandResult outcome = driftd({"--socket", "/nonexistent/driftd.sock", "status"});
  EXPECT_EQ(outcome.code, kUnreachable);
  EXPECT_THAT(outcome.err, HasSubstr("no agent answers on /nonexistent/driftd.sock: No such file or directory"));
}

/// Takes one request on a Unix socket and ends without an answer.
class VanishingAgent {
 public:
  explicit VanishingAgent(const std::string& path) : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(listener_, 1) != 0) {
      throw std::runtime_error("cannot listen on " + path);
    }
    thread_ = std::thread([this] {
      const int peer = ::accept(listener_, nullptr, nullptr);
      char request[4096];
      (void)!::read(peer, request, sizeof request);
      ::close(peer);
    });
  }
  ~VanishingAgent() {
    thread_.join();
    ::close(listener_);
  }

 private:
  int listener_;
  std::thread thread_;
};

TEST(Cli, AnAgentThatGoesBeforeItsAnswerLeavesTheOutcomeUnknown) {
  const TempDir dir;
  const VanishingAgent agent(dir.file("driftd.sock"));
  const CommandResult outcome = driftd({"--socket", dir.file("driftd.sock"), "reload"});
  EXPECT_EQ(outcome.code, kUnreachable);
  EXPECT_THAT(outcome.err, HasSubstr("whether it did what it was asked is not known"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("no agent answers")));
}

TEST(Cli, StatusShowsBackendsAndSinks) {
  FakeAgent agent;
  const CommandResult outcome = ask(agent, {"status"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(outcome.out, HasSubstr("agent edge 0.1.0, ready"));
  EXPECT_THAT(outcome.out, HasSubstr("circuit closed"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
}

TEST(Cli, ProbesExitWith0Or1) {
  FakeAgent agent;
  EXPECT_EQ(ask(agent, {"status", "--probe", "live"}).code, kOk);
  agent.control()->agent.ready = false;
  EXPECT_EQ(ask(agent, {"status", "--probe", "ready"}).code, kFinding);
}

TEST(Cli, DriftsExitWith1AndHideSecrets) {
  FakeAgent agent;
  EXPECT_EQ(ask(agent, {"drifts"}).code, kOk);
  agent.reader()->open = {{test::pending_drift("d-1"), "cache"}};
  const CommandResult outcome = ask(agent, {"drifts"});
  EXPECT_EQ(outcome.code, kFinding);
  EXPECT_THAT(outcome.out, HasSubstr("[REDACTED]"));
  EXPECT_THAT(outcome.out, HasSubstr("9223372036854775808"));
  EXPECT_THAT(ask(agent, {"drifts", "-o", "json"}).out, HasSubstr(R"("id":"d-1")"));
}

TEST(Cli, ResourceThatIsGoneIsNamedByWhatHappenedToIt) {
  FakeAgent agent;
  core::Drift drift = test::pending_drift("d-1");
  drift.operation = core::Operation::deleted;
  drift.changes = {{std::string(core::kIdentityPath), core::ChangeClass::config, "\"app\"", std::nullopt, false}};
  agent.reader()->open = {{drift, "cache"}};
  const std::string shown = ask(agent, {"drifts"}).out;
  EXPECT_THAT(shown, HasSubstr("(deleted)"));
  EXPECT_THAT(shown, Not(HasSubstr("$identity")));
}

TEST(Cli, DiscoverShowsBackendsAndSaysWhenTheListIsNotWhole) {
  FakeAgent agent;
  const CommandResult outcome = ask(agent, {"discover", "cluster"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_THAT(outcome.out, HasSubstr("orders  postgres"));
  EXPECT_THAT(outcome.out, HasSubstr("password=k8s:db/orders#password"));
  EXPECT_THAT(outcome.out, HasSubstr("denied: may not see namespace b"));
  EXPECT_THAT(outcome.out, HasSubstr("not complete"));
  EXPECT_THAT(ask(agent, {"discover", "cluster", "--json"}).out, HasSubstr(R"("complete":false)"));
  EXPECT_NE(ask(agent, {"discover", "none"}).code, kOk);
}

TEST(Cli, DiscoverAsksForTheBackendWhoseNameWasGivenWhateverItsCharacters) {
  FakeAgent agent;
  for (const char* name : {"a#b", "50%", "a?b=c"}) {
    const CommandResult outcome = ask(agent, {"discover", name});
    EXPECT_EQ(outcome.code, kFinding) << name;
    EXPECT_THAT(outcome.err, HasSubstr("there is no backend " + std::string(name)));
  }
}

TEST(Cli, DecisionsGoOnAfterARefusalAndSaySo) {
  FakeAgent agent;
  const CommandResult outcome = ask(agent, {"approve", "d-gone@abcdef01", "d-1@abcdef01", "--reason", "planned"});
  EXPECT_EQ(outcome.code, kFinding);
  EXPECT_THAT(outcome.err, HasSubstr("d-gone@abcdef01: not_found: there is no open drift d-gone"));
  EXPECT_THAT(outcome.out, HasSubstr("d-1  acl_user/app  approved"));
  EXPECT_EQ(agent.control()->decisions.at(1).reason, "planned");
}

TEST(Cli, EveryVerbReachesItsDecision) {
  FakeAgent agent;
  using Verb = core::Decision::Verb;
  for (const auto& [word, verb] : {std::pair("approve", Verb::approve), std::pair("reject", Verb::reject),
                                   std::pair("ignore", Verb::ignore), std::pair("undo", Verb::undo)}) {
    EXPECT_EQ(ask(agent, {word, "d-1@abcdef01"}).code, kOk);
    EXPECT_EQ(agent.control()->decisions.back().verb, verb) << word;
    EXPECT_EQ(agent.control()->decisions.back().digest, "abcdef01") << word;
    EXPECT_EQ(ask(agent, {word, "d-1", "--digest", "12345678"}).code, kOk);
    EXPECT_EQ(agent.control()->decisions.back().digest, "12345678") << word;
  }
}

TEST(Cli, RefreshExitsWith3WhenNotEverythingWasSeen) {
  FakeAgent agent;
  EXPECT_EQ(ask(agent, {"refresh", "cache", "--full"}).code, kOk);
  EXPECT_EQ(agent.control()->calls.back(), "refresh cache full");
  agent.control()->complete = false;
  EXPECT_EQ(ask(agent, {"refresh"}).code, kIncomplete);
}

TEST(Cli, OnceBesideAnAgentAsksIt) {
  FakeAgent agent;
  EXPECT_EQ(ask(agent, {"once"}).code, kOk);
  EXPECT_EQ(agent.control()->calls.back(), "refresh  full");
  agent.control()->complete = false;
  EXPECT_EQ(ask(agent, {"once"}).code, kIncomplete);
  agent.reader()->open = {{test::pending_drift("d-1"), "cache"}};
  EXPECT_EQ(ask(agent, {"once"}).code, kFinding);
}

TEST(Cli, OnceWithoutAnAgentOrWithAFileRunsHere) {
  FakeAgent agent;
  std::string baseline = "none";
  Hooks hooks;
  hooks.once = [&](const std::string&, const app::OnceOptions& options) {
    baseline = options.baseline_file;
    app::OnceResult result;
    result.exit = 42;
    result.error = "as the test says";
    return result;
  };
  EXPECT_EQ(driftd({"--socket", "/nonexistent", "once"}, hooks).code, 42);
  EXPECT_EQ(baseline, "");
  EXPECT_EQ(driftd({"--socket", agent.socket(), "once", "--baseline", "b.json"}, hooks).code, 42);
  EXPECT_EQ(baseline, "b.json");
}

TEST(Cli, TheOtherReadersPrintTablesAndJson) {
  FakeAgent agent;
  EXPECT_THAT(ask(agent, {"backends"}).out, HasSubstr("seen"));
  EXPECT_THAT(ask(agent, {"resources", "cache", "--bodies"}).out, HasSubstr("[REDACTED]"));
  EXPECT_THAT(ask(agent, {"queue"}).out, HasSubstr("ops"));
  EXPECT_THAT(ask(agent, {"deadletter", "ls"}).out, HasSubstr("HTTP 400 from ops"));
  EXPECT_THAT(ask(agent, {"audit"}).out, HasSubstr("planned"));
  EXPECT_THAT(ask(agent, {"plugin", "ls"}).out, HasSubstr("half a plugin"));
  EXPECT_THAT(ask(agent, {"explain", "cache", "acl_user/a/b", "flags"}).out, HasSubstr("the attribute is gone"));
  EXPECT_EQ(agent.control()->calls.back(), "explain cache acl_user|a/b flags");
  core::EnforcementView::Backend held;
  held.name = "cache";
  held.held["d-1"] = {core::HoldReason::window, "no window is open", {}, {"acl_user", "app"}};
  agent.control()->enforcing.backends.push_back(held);
  EXPECT_THAT(ask(agent, {"explain", "cache", "acl_user/app"}).out,
              HasSubstr("drift d-1 is not put back (window): no window is open"))
      << "the explanation may be of an attribute of another drift";
  for (const char* command : {"status", "backends", "resources", "drifts", "queue", "audit"}) {
    EXPECT_EQ(ask(agent, {command, "-o", "json"}).out.front(), '{') << command;
  }
}

TEST(Cli, PluginLsNamesTheCulpritAndEveryReason) {
  FakeAgent agent;
  const CommandResult outcome = ask(agent, {"plugin", "ls"});
  EXPECT_EQ(outcome.code, kOk);
  for (const char* part : {"redis.so", "cache", "parked until 1970-01-01", "signal 11 (Segmentation fault) in refresh",
                           "asked 2 times for secrets that are not its own", "broke rules: emit 3",
                           "emit: record 0 (/) has no kind", "exceeded budgets: rss 1", "refused", "half a plugin"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

TEST(Cli, PluginDescribeShowsSettingsAndAttributesAsTables) {
  FakeAgent agent;
  const CommandResult outcome = ask(agent, {"plugin", "describe", "redis"});
  EXPECT_EQ(outcome.code, kOk);
  for (const char* part : {"redis 1.0", "driftd.watch/1", "keys", "tls.ca", "string (path)", "a:1", "by reference",
                           "kind server: a server (class config)", "endpoint", "sensitive", "cache (parked)"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
  EXPECT_THAT(ask(agent, {"plugin", "describe", "cache", "-o", "json"}).out, HasSubstr("\"concurrency\":1"));
  EXPECT_THAT(ask(agent, {"plugin", "describe", "bad"}).out, HasSubstr("half a plugin"));
  const CommandResult unknown = ask(agent, {"plugin", "describe", "mysql"});
  EXPECT_EQ(unknown.code, kFinding);
  EXPECT_THAT(unknown.err, HasSubstr("no plugin 'mysql'; available: redis, bad.so"));
}

TEST(Cli, PluginResumeFreesWhatIsParkedAndSaysWhenNothingIs) {
  FakeAgent agent;
  const CommandResult outcome = ask(agent, {"plugin", "resume", "cache", "--reason", "fixed"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_EQ(outcome.out, "cache: freed, its worker starts\n");
  EXPECT_EQ(agent.control()->calls.back(), "resume cache");
  EXPECT_EQ(agent.control()->lines.back().reason, "fixed");
  const CommandResult none = ask(agent, {"plugin", "resume", "redis"});
  EXPECT_EQ(none.code, kFinding);
  EXPECT_THAT(none.err, HasSubstr("nothing of 'redis' is parked"));
}

TEST(Cli, ReplayAndDeadLettersSayHowMany) {
  FakeAgent agent;
  EXPECT_THAT(ask(agent, {"replay", "--sink", "ops", "--from", "12"}).out, HasSubstr("7 events"));
  EXPECT_EQ(agent.control()->calls.back(), "replay ops 12 ");
  ask(agent, {"replay", "--sink", "ops", "--from", "e-9"});
  EXPECT_EQ(agent.control()->calls.back(), "replay ops 0 e-9");
  EXPECT_EQ(ask(agent, {"deadletter", "drop", "--sink", "ops", "4", "5"}).out, "2 dropped\n");
}

TEST(Cli, ReloadSaysWhatItTookAndLoudlyWhatWaits) {
  FakeAgent agent;
  agent.control()->reloaded = {{"rules of backend cache", "routes"}, {}};
  const CommandResult whole = ask(agent, {"reload"});
  EXPECT_EQ(whole.out, "reloaded: rules of backend cache, routes\n");
  EXPECT_EQ(whole.err, "");
  agent.control()->reloaded.needs_restart = {{"backends.cache.interval", "d.yaml:14"}, {"sinks.ops (removed)", ""}};
  const CommandResult outcome = ask(agent, {"reload"});
  EXPECT_EQ(outcome.code, kOk);
  EXPECT_EQ(outcome.err,
            "driftd: 2 settings are not in use before the agent is restarted:\n"
            "  backends.cache.interval  d.yaml:14\n  sinks.ops (removed)\n");
  const CommandResult json = ask(agent, {"-o", "json", "reload"});
  EXPECT_THAT(
      json.out,
      HasSubstr(
          R"("applied":["rules of backend cache","routes"],"needs_restart":[{"setting":"backends.cache.interval","where":"d.yaml:14"})"));
  EXPECT_THAT(json.err, HasSubstr("2 settings are not in use"));
  EXPECT_EQ(json.code, kOk);
}

TEST(Cli, StatusShowsWhatWaitsForARestart) {
  FakeAgent agent;
  EXPECT_THAT(ask(agent, {"status"}).out, Not(HasSubstr("needs a restart")));
  agent.control()->agent.needs_restart = {{"backends.cache.interval", "d.yaml:14"}, {"sinks.ops (removed)", ""}};
  const std::string out = ask(agent, {"status"}).out;
  EXPECT_THAT(
      out, HasSubstr("needs a restart: backends.cache.interval (d.yaml:14)\nneeds a restart: sinks.ops (removed)\n"));
}

TEST(Cli, ReloadTellsWhyItWasRefused) {
  FakeAgent agent;
  EXPECT_EQ(ask(agent, {"reload"}).out, "reloaded\n");
  agent.control()->reload_result = fail(Code::invalid, "driftd.yaml:3:1: unknown key 'x'");
  const CommandResult outcome = ask(agent, {"reload"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("driftd.yaml:3:1"));
}

TEST(Cli, SchemaPrintsTheConfigsOrAProviders) {
  FakeAgent agent;
  EXPECT_THAT(driftd({"schema"}).out, HasSubstr("json-schema.org"));
  EXPECT_EQ(ask(agent, {"schema", "redis"}).out, "{\"what\":\"settings\"}\n");
  EXPECT_EQ(ask(agent, {"schema", "mongo"}).code, kFinding);
}

TEST(Cli, FollowPrintsEventsAsTheyCome) {
  FakeAgent agent;
  agent.reader()->append(1);
  test::Child follow(
      {std::string(DRIFTD_BINARY_DIR) + "/bin/driftd_cli_only", "events", "--follow", "--after", "0", "--count", "2"},
      {agent.folder.file("log"), {{"DRIFTD_SOCKET", agent.socket()}}, ""});
  ASSERT_TRUE(test::eventually([&] { return agent.reader()->reads >= 2; }));
  agent.reader()->append(2);
  EXPECT_EQ(follow.wait(std::chrono::seconds(10)), 0);
  EXPECT_THAT(test::read_file(agent.folder.file("log")), HasSubstr("2  backend.cache.credentials.rotated"));
}

TEST(Cli, AConfigThatWasNamedAndCannotBeReadNamesNoOtherAgent) {
  const TempDir folder;
  const auto broken = folder.write("broken.yaml", "admin: { socket: [\n");
  const auto typo = folder.write("typo.yaml", "admin: { sokcet: /run/other.sock }\n");
  for (const auto& file : {folder.file("nowhere.yaml"), broken, typo}) {
    for (const char* command : {"status", "drifts", "reload"}) {
      const CommandResult outcome = driftd({"-c", file, command});
      EXPECT_EQ(outcome.code, kConfig) << file << " " << command;
      EXPECT_THAT(outcome.err, AllOf(HasSubstr(file), HasSubstr("--socket"), Not(HasSubstr("no agent answers"))))
          << file;
    }
  }
  FakeAgent agent;
  EXPECT_EQ(driftd({"-c", broken, "--socket", agent.socket(), "status"}).code, kOk)
      << "a socket that is named is meant";
}

TEST(Table, ShowsWhatATerminalWouldObey) {
  std::ostringstream out;
  Table table({"A", "B"});
  table.add({"x\x1b[31m\n", "é"});
  table.print(out, false);
  EXPECT_EQ(out.str(), "A              B\nx\\x1b[31m\\x0a  é\n");
}

TEST(Process, ExitCodeAndNoColourThroughAPipe) {
  FakeAgent agent;
  const std::string binary = std::string(DRIFTD_BINARY_DIR) + "/bin/driftd_cli_only";
  const auto outcome = test::run({binary, "--socket", agent.socket(), "status"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
  EXPECT_EQ(test::run({binary, "--socket", "/nonexistent", "status"}).code, 69);
}

}  // namespace
}  // namespace driftd::cli
