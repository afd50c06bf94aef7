// SPDX-License-Identifier: Apache-2.0
// One agent on real servers: a change from outside becomes a drift in the store and a message in the stream.
#include <sys/resource.h>
#include <csignal>
#include <filesystem>

#include "line_fixture.hpp"
#include "support/floor.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

std::size_t count(const NatsServer& nats, const std::string& subject) {
  const auto events = events_of_stream(nats);
  const auto found = events.find(subject);
  return found == events.end() ? 0 : found->second.size();
}

bool has(const std::map<std::string, std::vector<std::string>>& events, const std::string& subject) {
  return events.count(subject) > 0;
}

constexpr int kMaxOfFloor = 10;  // times the cost of the same delivery without an agent

TEST_F(Line, ChangeOfAWatchedStateIsAckedByJetStreamWithinASecond) {
  NatsServer nats;
  Agent a = agent("30s", terraform_backend(state_), nats_sink(nats));
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform"}));
  const std::string subject = "platform/instance/kafka_topic.orders";
  Floor floor(dir_.path().string(), nats.url());
  EXPECT_TRUE(one_of(5, [&, partitions = 4]() mutable {
    const std::size_t before = count(nats, subject);
    const auto begin = std::chrono::steady_clock::now();
    replace_file(state_, tfstate(7, partitions));
    ++partitions;
    EXPECT_TRUE(eventually([&] { return count(nats, subject) > before; }, seconds(20))) << a.log();
    const auto took = std::chrono::steady_clock::now() - begin;
    const auto bare_begin = std::chrono::steady_clock::now();
    floor.deliver(tfstate(7, partitions));
    (void)count(nats, subject);
    const auto bare = std::chrono::steady_clock::now() - bare_begin;  // the same write, ack and query without an agent
    return took < std::max<std::chrono::steady_clock::duration>(seconds(1), kMaxOfFloor * bare);
  })) << "on a machine on which the delivery without an agent takes more than 100 ms, the limit is ten times that";
  ASSERT_EQ(drifts(a, "platform").size(), 1u);
  EXPECT_EQ(drifts(a, "platform")[0]["status"], "pending");
}

TEST_F(Line, ChangeOfAPolledServerIsAckedWithinTheDefaultIntervalOf30Seconds) {
  NatsServer nats;
  Agent a = agent("30s", redis_backend(redis_), nats_sink(nats));
  ASSERT_NO_FATAL_FAILURE(start(a, {"cache"}));
  const std::string subject = "cache/server/server";
  EXPECT_TRUE(one_of(2, [&, megabytes = 64]() mutable {
    const std::size_t before = count(nats, subject);
    const auto begin = std::chrono::steady_clock::now();
    redis_.command({"CONFIG", "SET", "maxmemory", std::to_string(megabytes++) + "mb"});
    EXPECT_TRUE(eventually([&] { return count(nats, subject) > before; }, seconds(60))) << a.log();
    return std::chrono::steady_clock::now() - begin < seconds(30);
  }));
}

TEST_F(Line, AThousandCyclesOverOneStandingDriftAreOneEvent) {
  NatsServer nats;
  Agent a = agent("30s", redis_backend(redis_), nats_sink(nats));
  ASSERT_NO_FATAL_FAILURE(start(a, {"cache"}));
  redis_.command({"CONFIG", "SET", "maxmemory", "64mb"});
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::string> words = {"refresh", "cache"};
    if (i % 2 == 0) words.push_back("--full");
    const Output refreshed = a.cli(words);
    ASSERT_EQ(refreshed.code, 0) << refreshed.out << refreshed.err;
  }
  EXPECT_GE(a.backend("cache")->at("cycles").get<std::int64_t>(), 1000);
  EXPECT_EQ(events_of_stream(nats)["cache/server/server"].size(), 1u);
  EXPECT_EQ(drifts(a, "cache").size(), 1u);
}

TEST_F(Line, RightRevokedOrServerStoppedOpensNoDriftAndCoverageNamesTheRight) {
  NatsServer nats;
  Agent a = agent("200ms", redis_backend(redis_), nats_sink(nats));
  ASSERT_NO_FATAL_FAILURE(start(a, {"cache"}));
  redis_.command({"ACL", "SETUSER", "driftd", "-config|get", "-acl|list"});
  ASSERT_TRUE(eventually([&] { return a.backend("cache")->dump().find("+config|get") != std::string::npos; }))
      << a.log();
  redis_.stop();
  ASSERT_TRUE(eventually([&] { return a.backend("cache")->at("health").dump().find("down") != std::string::npos; }))
      << a.backend("cache")->dump();
  redis_.start();
  redis_.grant_readme("redis-canary");
  const auto before = a.backend("cache")->at("cycles").get<std::int64_t>();
  ASSERT_TRUE(eventually([&] {
    const auto b = *a.backend("cache");
    // On a busy machine the backend may be late although nothing failed.
    const bool well = b.at("state") == "ok" || b.at("state") == "late";
    return b.at("cycles").get<std::int64_t>() > before + 3 && well && b.value("last_error", "x").empty();
  })) << a.backend("cache")->dump();
  for (const auto& drift : drifts(a, "cache")) {
    EXPECT_EQ(drift["resource"], "acl_user/driftd") << "only the user that the test itself changed: " << drift.dump();
    EXPECT_NE(drift["operation"], "deleted") << drift.dump();
  }
}

TEST_F(Line, PostgresGrantRevokedInTheMiddleOpensNoDriftAndCoverageNamesIt) {
  PostgresServer postgres;
  grant_readme(postgres);
  postgres.sql("create role app login password 'role-1'");
  Agent a = agent("200ms", postgres_backend(postgres), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"orders-db"}));
  const auto status_shows = [&](const std::string& text) {
    return eventually([&] { return a.backend("orders-db")->dump().find(text) != std::string::npos; });
  };
  const auto cycles = [&] { return a.backend("orders-db")->at("cycles").get<std::int64_t>(); };
  postgres.sql("revoke pg_monitor from driftd");
  EXPECT_TRUE(status_shows("grant pg_monitor")) << a.backend("orders-db")->dump();
  EXPECT_THAT(a.cli({"status"}).out, HasSubstr("grant pg_monitor"));
  EXPECT_THAT(a.log(), HasSubstr("orders-db: setting: denied: "));
  postgres.sql("revoke all on pg_hba_file_rules, pg_file_settings from driftd");
  EXPECT_TRUE(status_shows("pg_hba_file_rules")) << a.backend("orders-db")->dump();
  postgres.sql("revoke execute on function driftd.role_verifiers() from driftd");
  EXPECT_TRUE(status_shows("role_verifiers")) << a.backend("orders-db")->dump();
  const auto before = cycles();
  ASSERT_TRUE(eventually([&] { return cycles() > before + 3; }));
  for (const auto& drift : drifts(a, "orders-db")) {
    const std::string id = drift.value("resource", drift.dump());
    // The grants of the role `driftd` are read too, so the revoked ones are a drift of that role. It is the only one.
    EXPECT_EQ(id, "role/driftd") << drift.dump();
    EXPECT_NE(drift["operation"], "deleted") << drift.dump();
  }
  postgres.stop();
  ASSERT_TRUE(eventually([&] { return a.backend("orders-db")->at("health").value("state", "") == "down"; }));
  for (const auto& drift : drifts(a, "orders-db")) EXPECT_NE(drift["operation"], "deleted") << drift.dump();
}

TEST_F(Line, SegfaultOfTheAgentLeavesNoCoreEvenWhereCoresAreAllowed) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_CORE, &before), 0);
  const rlimit open_limit{before.rlim_max, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_CORE, &open_limit), 0);
  const auto cores = [] {
    std::set<std::string> out;
    for (const auto& file : std::filesystem::directory_iterator(".")) {
      if (file.path().filename().string().rfind("core", 0) == 0) out.insert(file.path().string());
    }
    return out;
  };
  const auto cores_before = cores();
  Agent a = agent("200ms", terraform_backend(state_), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform"}));
  const std::string proc = "/proc/" + std::to_string(a.pid());
  EXPECT_THAT(read_file(proc + "/limits"), testing::ContainsRegex("Max core file size +0 +0"));
  a.signal(SIGSEGV);
  EXPECT_TRUE(eventually([&] { return !a.running(); }));
  EXPECT_EQ(cores(), cores_before);
  ::setrlimit(RLIMIT_CORE, &before);
}

TEST_F(Line, ApprovedDriftMovesTheBaselineAndAStaleApprovalConflicts) {
  NatsServer nats;
  Agent a = agent("200ms", terraform_backend(state_), nats_sink(nats));
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform"}));
  replace_file(state_, tfstate(7, 4));
  ASSERT_TRUE(eventually([&] { return drifts(a, "platform").size() == 1; })) << a.log();
  const std::string id = drifts(a, "platform")[0]["id"];
  const Output approved = a.cli({"approve", drifts(a, "platform")[0]["ref"], "--reason", "planned"});
  EXPECT_EQ(approved.code, 0) << approved.err;
  EXPECT_TRUE(eventually([&] { return drifts(a, "platform").empty(); }));
  EXPECT_NE(a.cli({"approve", id}).code, 0);
  EXPECT_TRUE(eventually([&] { return events_of_stream(nats)["platform/instance/kafka_topic.orders"].size() == 2; }));
}

TEST_F(Line, EditWithoutASerialIsAskedAndAnApplyIsAcceptedByItself) {
  NatsServer nats;
  Agent a = agent("200ms", terraform_backend(state_), nats_sink(nats));
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform"}));
  replace_file(state_, tfstate(8, 5));
  ASSERT_TRUE(eventually([&] { return has(events_of_stream(nats), "platform/instance/kafka_topic.orders"); }))
      << a.log();
  EXPECT_THAT(drifts(a, "platform"), testing::IsEmpty());
  replace_file(state_, tfstate(8, 6));
  EXPECT_TRUE(eventually([&] { return drifts(a, "platform").size() == 1; })) << a.log();
}

TEST_F(Line, NoCanaryIsInAnyEventLogStoreFileOrOutput) {
  NatsServer nats;
  HttpReceiver receiver;
  PostgresServer postgres;
  grant_readme(postgres);
  postgres.sql("create role app login password 'role-canary-1'");
  redis_.command({"CONFIG", "SET", "masterauth", "master-canary-1"});
  redis_.command({"ACL", "SETUSER", "app", "on", ">user-canary-1"});
  Agent a = agent("200ms", redis_backend(redis_) + postgres_backend(postgres) + terraform_backend(state_),
                  nats_sink(nats) + webhook_sink(receiver));
  ASSERT_NO_FATAL_FAILURE(start(a, {"cache", "orders-db", "platform"}));
  redis_.command({"CONFIG", "SET", "masterauth", "master-canary-2"});
  redis_.command({"ACL", "SETUSER", "app", "resetpass", ">user-canary-2"});
  postgres.sql("alter role app password 'role-canary-2'");
  replace_file(state_, tfstate(7, 3, "tf-canary-2"));
  // This comes last, because after it the test itself cannot log in.
  redis_.command({"CONFIG", "SET", "requirepass", "require-canary"});
  const std::vector<std::string> changed = {"cache/server/server", "cache/acl_user/app", "cache/acl_user/default",
                                            "orders-db/role/app", "platform/instance/kafka_topic.orders"};
  for (const auto& subject : changed) {
    ASSERT_TRUE(eventually([&] {
      return has(events_of_stream(nats), subject) && has(events_of_webhook(receiver), subject);
    })) << subject
        << "\n"
        << a.log();
  }
  std::string everything = a.log();
  for (const auto& command : {"drifts", "resources", "events", "backends", "queue", "status", "audit"}) {
    everything += a.cli({command, "-o", "json"}).out + a.cli({command}).out;
  }
  everything += a.cli({"drifts", "--all", "-o", "json"}).out;
  for (const auto& message : stream_contents(nats.url(), "DRIFT")) everything += message.subject + message.body;
  for (const auto& request : receiver.received()) everything += request.body;
  EXPECT_EQ(a.stop(), 0);
  for (const auto& file : std::filesystem::directory_iterator(a.data_dir())) everything += read_file(file.path());
  EXPECT_GT(everything.size(), 10'000u);
  EXPECT_THAT(everything, Not(HasSubstr("canary")));
}

TEST_F(Line, StateInAFolderThatIsReplacedOrBehindALinkThatIsSwitchedIsFollowed) {
  namespace fs = std::filesystem;
  TempDir infra;  // not in the agent's own folder, so that the worker's jail opens it
  for (const char* version : {"1", "2", "3"})
    infra.write(std::string("releases/") + version + "/terraform.tfstate", tfstate(7, 3));
  fs::create_directory_symlink(infra.file("releases/1"), infra.file("current"));
  Agent a =
      agent("200ms", terraform_backend(infra.file("current/terraform.tfstate")), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform"}));
  const auto drift_shows = [&](int partitions) {
    return eventually(
        [&] {
          const auto open = drifts(a, "platform");
          return open.size() == 1 && open[0].at("changes").at(0).value("new", nlohmann::json()) == partitions;
        },
        seconds(30));
  };
  fs::create_directory_symlink(infra.file("releases/2"), infra.file("next"));
  fs::rename(infra.file("next"), infra.file("current"));
  replace_file(infra.file("releases/2/terraform.tfstate"), tfstate(7, 4));
  EXPECT_TRUE(drift_shows(4)) << "the link was switched\n" << a.log();
  fs::rename(infra.file("releases/2"), infra.file("releases/old"));
  fs::rename(infra.file("releases/3"), infra.file("releases/2"));
  replace_file(infra.file("releases/2/terraform.tfstate"), tfstate(7, 5));
  EXPECT_TRUE(drift_shows(5)) << "the folder was replaced\n" << a.log();
  fs::remove_all(infra.file("releases/2"));
  EXPECT_TRUE(eventually(
      [&] {
        const nlohmann::json coverage = a.backend("platform")->at("coverage");
        for (const auto& line : coverage) {
          if (line.at("kind") == "instance") return line.at("state") == "stale";
        }
        return false;
      },
      seconds(20)))
      << "the coverage does not say that the data is stale\n"
      << a.backend("platform")->dump();
  infra.write("releases/2/terraform.tfstate", tfstate(7, 6));  // a new folder and a new file, as `git clone` makes them
  EXPECT_TRUE(drift_shows(6)) << "the folder was made again\n" << a.log();
  EXPECT_TRUE(eventually([&] { return a.backend("platform")->at("state") == "ok"; }, seconds(30)));
}

TEST_F(Line, OutageIsToldByItsCauseAndAWrongPasswordAsDenied) {
  PostgresServer postgres;
  grant_readme(postgres);
  Agent a = agent("200ms", postgres_backend(postgres), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"orders-db"}));
  const auto error = [&] { return a.backend("orders-db")->value("last_error", ""); };
  postgres.stop();
  EXPECT_TRUE(eventually([&] { return error().find("onnection") != std::string::npos; }, seconds(30)));
  EXPECT_THAT(error(),
              Not(testing::AnyOf(HasSubstr("does not say which one it is"), HasSubstr("\t"), HasSubstr("\n"))));
  postgres.start();
  EXPECT_TRUE(eventually([&] { return error().empty(); }, seconds(60))) << error();
  postgres.sql("alter role driftd password 'another'");
  postgres.stop();
  postgres.start();
  EXPECT_TRUE(eventually([&] { return a.backend("orders-db")->at("state") == "denied"; }, seconds(60)))
      << a.backend("orders-db")->dump();
  EXPECT_THAT(error(), Not(HasSubstr("does not say which one it is")));
}

TEST_F(Line, BadStateFilesAreReportedAndNothingIsDeleted) {
  Agent a = agent("100ms", terraform_backend(state_), "  desk: { type: notifications }\n");
  ASSERT_NO_FATAL_FAILURE(start(a, {"platform"}));
  const std::string good = tfstate(7, 3);
  for (const std::string& bad :
       {std::string(), good.substr(0, 80), std::string("{\"version\":99}"), std::string("not json")}) {
    const auto before = a.backend("platform")->at("failures").get<std::int64_t>();
    replace_file(state_, bad);
    ASSERT_TRUE(eventually([&] { return a.backend("platform")->at("failures").get<std::int64_t>() > before; })) << bad;
    EXPECT_THAT(drifts(a, "platform"), testing::IsEmpty()) << bad;
  }
  std::filesystem::remove(state_);
  ASSERT_TRUE(eventually([&] { return a.backend("platform")->dump().find("No such file") != std::string::npos; }));
  EXPECT_THAT(drifts(a, "platform"), testing::IsEmpty());
  replace_file(state_, good);
  ASSERT_TRUE(eventually([&] { return a.backend("platform")->at("state") == "ok"; }, seconds(40)));
  EXPECT_THAT(drifts(a, "platform"), testing::IsEmpty());
  EXPECT_EQ(a.stop(), 0);
}

}  // namespace
}  // namespace driftd::test
