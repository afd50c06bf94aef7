// SPDX-License-Identifier: Apache-2.0
// Attacks by somebody who has a login of their own in a watched system, may write a Terraform state, or is a user of
// the agent's machine.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "attacked.hpp"
#include "support/postgres.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Hostile : public Attacked {};

std::string postgres_victim(const PostgresServer& server) {
  return "  - name: orders-db\n    provider: postgres\n    settings: { endpoints: [\"" + server.endpoint() +
         "\"], database: postgres, user: driftd, password: \"${env:PG_PASSWORD}\", sslmode: disable }\n";
}

TEST_F(Hostile, ALoginOfPostgresNeitherRunsCodeAsTheAgentNorHidesWhatComesAfterIt) {
  PostgresServer server;
  std::string grants = readme_grants("postgres", "sql");
  grants.replace(grants.find("CHANGE-ME"), 9, "pg-canary");
  server.sql(grants);
  server.sql(
      "create role mallory login password 'm'; grant create on schema public to public; create table public.loot(who "
      "text); "
      "grant insert on public.loot to public");
  for (const char* types : {"oid,name", "text,integer", "name,name", "text,text", "name,text", "oid,oid"}) {
    const std::string list = types;
    const std::string left = list.substr(0, list.find(',')), right = list.substr(list.find(',') + 1);
    for (const char* name : {"||", "=", "<>"}) {
      server.sql_as("mallory", "m",
                    "create or replace function public.hijack(" + list +
                        ") returns boolean language plpgsql as $$ begin insert into "
                        "public.loot values (current_user); return true; end $$; create operator public." +
                        name + " (leftarg=" + left + ", rightarg=" + right + ", procedure=public.hijack)");
    }
  }
  ASSERT_NO_FATAL_FAILURE(start_agent(postgres_victim(server), {"orders-db"}, {{"PG_PASSWORD", "pg-canary"}}));
  server.sql_as("mallory", "m",
                "do $$ begin execute 'alter role mallory set search_path = ' || (select string_agg('n' || "
                "lpad(i::text, 30, 'x'), ',') from "
                "generate_series(1, 160000) i); end $$");
  ASSERT_EQ(agent_->cli({"refresh", "cache"}).code, 0);
  server.sql("create role zz_backdoor superuser");
  EXPECT_TRUE(drift_appears("orders-db", "zz_backdoor"));
  expect_nothing_deleted("orders-db");
  EXPECT_EQ(server.value("select count(*) from public.loot where who = 'driftd'"), "0");
  expect_unharmed();
}

TEST_F(Hostile, AStateThatNestsWithoutEndCostsItsOwnAttributeAlone) {
  const std::string state = dir_.file("terraform.tfstate");
  const auto write = [&](int serial, const std::string& poison, int partitions) {
    const std::string text =
        R"({"version":4,"terraform_version":"1.9.0","serial":)" + std::to_string(serial) +
        R"(,"lineage":"abc","outputs":{},"resources":[{"mode":"managed","type":"thing","name":"evil","provider":"p",)"
        R"("instances":[{"attributes":{"x":)" +
        poison +
        R"(}}]},{"mode":"managed","type":"thing","name":"good",)"
        R"("provider":"p","instances":[{"attributes":{"partitions":)" +
        std::to_string(partitions) + "}}]}]}";
    std::ofstream(state + ".new") << text;
    std::filesystem::rename(state + ".new", state);
  };
  write(7, "1", 3);
  ASSERT_NO_FATAL_FAILURE(
      start_agent("  - { name: platform, provider: terraform, settings: { path: " + state + " } }\n", {"platform"}));
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  write(7, deep, 9);
  EXPECT_TRUE(drift_appears("platform", "partitions")) << "the neighbour in the same state is still judged";
  ASSERT_TRUE(neighbour_is_watched());
  EXPECT_EQ(drifts("platform").size(), 1u);
  EXPECT_THAT(agent_->log(), Not(HasSubstr("killed by signal")));
  expect_unharmed();
}

TEST_F(Hostile, ASecretInAnAddressIsShownNowhere) {
  const std::string file = dir_.write("url", "redis://:hunter2-file-url@" + redis_.address());
  ASSERT_NO_FATAL_FAILURE(
      start_agent("  - { name: urlform, provider: redis, settings: { address: \"${file:" + file +
                      "}\" } }\n"
                      "  - { name: urllit, provider: redis, settings: { address: \"redis://:hunter2-literal-url@" +
                      redis_.address() +
                      "\" } }\n"
                      "  - { name: pgurl, provider: postgres, settings: { endpoints: [\"postgres://u:hunter2-pg-url@" +
                      redis_.address() +
                      "\"], database: postgres, user: driftd, password: x } }\n"
                      "  - { name: tfurl, provider: terraform, settings: { address: \"http://u:hunter2-tf-url@" +
                      redis_.address() + "/state?private_token=hunter2-query\" } }\n",
                  {}));
  ASSERT_TRUE(neighbour_is_watched());
  for (const char* name : {"urlform", "urllit", "pgurl", "tfurl"}) {
    EXPECT_TRUE(eventually([&] { return !agent_->backend(name)->value("last_error", "").empty(); }))
        << agent_->backend(name)->dump();
  }
  EXPECT_THAT(all_output(), Not(HasSubstr("hunter2")));
  expect_unharmed();
}

/// A TCP connection to a loopback port that stays open. It sends the beginning of a request, or a whole one.
class Idler {
 public:
  Idler(int port, bool whole) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    constexpr std::string_view kAsk = "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n";
    if (connected_) (void)!::send(fd_, kAsk.data(), whole ? kAsk.size() : kAsk.size() / 2, MSG_NOSIGNAL);
  }
  ~Idler() { ::close(fd_); }
  Idler(const Idler&) = delete;
  Idler& operator=(const Idler&) = delete;

  bool connected() const { return connected_; }

 private:
  int fd_;
  bool connected_ = false;
};

TEST_F(Hostile, IdleConnectionsToTheMetricsPortShutNobodyOut) {
  ASSERT_NO_FATAL_FAILURE(start_agent("", {}));
  const auto status_of = [&](const std::string& path) {
    return run({"curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "20",
                "http://127.0.0.1:" + std::to_string(agent_->admin_port()) + path})
        .out;
  };
  std::vector<std::unique_ptr<Idler>> idle;
  for (int i = 0; i < 200; ++i) {
    idle.push_back(std::make_unique<Idler>(agent_->admin_port(), i % 2 == 0));
    ASSERT_TRUE(idle.back()->connected()) << i;
  }
  for (int i = 0; i < 5; ++i) {
    for (const char* path : {"/livez", "/readyz", "/metrics"}) EXPECT_EQ(status_of(path), "200") << path;
    EXPECT_EQ(agent_->cli({"status"}).code, 0);
    EXPECT_EQ(agent_->cli({"status", "--probe", "live"}).code, 0);
    for (int n = 0; n < 10; ++n) {  // more than the port serves at once: the attacker takes every free place again
      idle.push_back(std::make_unique<Idler>(agent_->admin_port(), false));
      ASSERT_TRUE(idle.back()->connected()) << n;
    }
  }
  expect_unharmed();
}

}  // namespace
}  // namespace driftd::test
