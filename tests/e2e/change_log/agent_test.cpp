// SPDX-License-Identifier: Apache-2.0
// A real agent that puts values of a real Redis back, and the real sidecar.
#include <gmock/gmock.h>
#include <random>

#include "e2e/change_log/world.hpp"
#include "support/agent.hpp"
#include "support/certificates.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ChangeLogOfAgent : public testing::Test {
 protected:
  ChangeLogOfAgent() {
    server_.grant_readme("redis-canary");
    EXPECT_EQ(server_.command({"ACL", "SETUSER", "driftd", "+config|set", "+config|rewrite", "+acl|setuser"}), "OK");
  }
  static inline const std::map<std::string, std::string> kEnv{{"REDIS_PASSWORD", "redis-canary"}};
  std::string socket() const { return dir_.file("run/change-logs.sock"); }
  /// Makes the agent with this section of its configuration, and a provider that puts values back.
  void make_agent(const std::string& change_log) {
    agent_ = std::make_unique<Agent>(
        dir_,
        change_log +
            "enforce: { enabled: true, minimum_age: 0s, per_hour: 1000, per_cycle: 100 }\ndefaults:\n  interval: "
            "200ms\nbackends:\n  - name: cache\n    provider: redis\n    enforce: true\n    policy: { config: enforce "
            "}\n    settings: { address: \"" +
            server_.address() + "\", username: driftd, password: \"${env:REDIS_PASSWORD}\" }\n",
        kEnv);
  }
  std::string section() const { return "change_log: { socket: \"" + socket() + "\" }\n"; }
  void start(std::vector<std::string> wrapper = {}) {
    agent_->start(std::move(wrapper));
    ASSERT_TRUE(eventually([&] { return agent_->established({"cache"}); }, seconds(60))) << agent_->log();
  }
  /// Changes a value and waits until it was put back.
  void drift(std::size_t operations) {
    ASSERT_EQ(server_.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}), "OK");
    ASSERT_TRUE(eventually([&] { return agent_->rows({"operations"}).size() == operations; }, seconds(30)))
        << agent_->cli({"enforce", "status"}).out << agent_->log();
    ASSERT_TRUE(eventually([&] { return agent_->rows({"drifts"}).empty(); }, seconds(30)));
  }
  json log() const {  // empty while the agent starts
    const json status = agent_->ask({"status"});
    return status.is_object() ? status.value("change_log", json::object()) : json::object();
  }

  TempDir dir_;
  RedisServer server_;
  std::unique_ptr<Agent> agent_;
  Sidecar sidecar_{"unix://" + dir_.file("run/change-logs.sock"), dir_.file("changes.jsonl")};
};

TEST_F(ChangeLogOfAgent, WhatItMadeArrivesOnceTheSidecarIsThereAndWhatItOnlySawDoesNot) {
  make_agent(section());
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(drift(1));
  ASSERT_TRUE(eventually([&] { return log().value("waiting", 0) == 1 && log().value("failing", false); }))
      << log().dump();
  const Output status = agent_->cli({"status"});
  EXPECT_THAT(status.out, AllOf(HasSubstr("change log: 0 sent, 1 wait since "), HasSubstr(socket()))) << status.out;
  sidecar_.start();
  ASSERT_TRUE(eventually([&] { return log().value("waiting", 1) == 0; })) << log().dump() << sidecar_.log();
  EXPECT_EQ(log().value("sent", 0), 1);
  const auto lines = sidecar_.lines();
  ASSERT_EQ(lines.size(), 1u) << "drifts, decisions and refreshes are not changes that driftd made";
  const json& line = lines.front();
  const json operation = agent_->rows({"operations"}).front();
  EXPECT_EQ(line.at("operation_id"), operation.at("id"));
  EXPECT_EQ(line.at("result").at("status"), "success");
  EXPECT_EQ(line.at("kind"), "server");
  EXPECT_THAT(line.value("provider", ""), HasSubstr("redis:"));
  EXPECT_THAT(line.value("api_version", ""), HasSubstr("redis/v"));
  EXPECT_THAT(line.at("desired").dump(), HasSubstr("noeviction"));
  EXPECT_THAT(line.at("observed").dump(), HasSubstr("allkeys-lru"));
  EXPECT_EQ(line.value("trace_id", "").size(), 32u);
  EXPECT_EQ(line.at("details").at("cause"), "policy");
  EXPECT_THAT(line.at("details").value("commands", ""), HasSubstr("CONFIG SET"));
  EXPECT_THAT(line.dump(), Not(HasSubstr("redis-canary")));
  std::printf(
      "an entry of a Redis server, with all of its settings twice, has %zu bytes as a line; docs/change-log.md "
      "expects about 4096\n",
      static_cast<std::size_t>(sidecar_.size()));
  EXPECT_LT(sidecar_.size(), 4u * 4'096u);
  const Output metrics = run({"curl", "-s", "http://127.0.0.1:" + std::to_string(agent_->admin_port()) + "/metrics"});
  EXPECT_THAT(metrics.out, AllOf(HasSubstr("driftd_change_log_entries{state=\"sent\"} 1"),
                                 HasSubstr("driftd_change_log_entries{state=\"waiting\"} 0"),
                                 HasSubstr("driftd_change_log_failures ")));
}

TEST_F(ChangeLogOfAgent, TheSeedsFlagTurnsItOnForTheNamedProvidersOnly) {
  make_agent("change_log: { providers: [], socket: \"" + socket() + "\" }\n");
  sidecar_.start();
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(log(), json({{"on", false}})) << "no provider was opted in";
  ASSERT_NO_FATAL_FAILURE(drift(1));
  ASSERT_EQ(agent_->stop(), 0);
  const std::string add = R"(exec "$@" --enable-change-logs=)";
  ASSERT_NO_FATAL_FAILURE(start({"sh", "-c", add + "kafka", "sh"}));
  EXPECT_TRUE(log().value("on", false));
  ASSERT_NO_FATAL_FAILURE(drift(2));
  ASSERT_EQ(agent_->stop(), 0);
  EXPECT_EQ(sidecar_.lines().size(), 0u);
  ASSERT_NO_FATAL_FAILURE(start({"sh", "-c", add + "kafka,redis", "sh"}));
  ASSERT_NO_FATAL_FAILURE(drift(3));
  ASSERT_TRUE(eventually([&] { return sidecar_.lines().size() == 1; })) << agent_->log();
  EXPECT_EQ(agent_->cli({"reload"}).code, 0) << "the flag is no edit of the file";
  EXPECT_EQ(agent_->ask({"status"}).at("needs_restart").size(), 0u);
}

/// Two thousand operations wait when the agent starts; it is killed while it sends them.
TEST_F(ChangeLogOfAgent, AKilledAgentLosesNothing) {
  constexpr int kOperations = 2'000;
  make_agent(section());
  ASSERT_NO_FATAL_FAILURE(store_operations(agent_->data_dir(), kOperations));
  sidecar_.start();
  std::mt19937 random(18);
  int kills = 0;
  for (; kills < 30 && sidecar_.counts().size() < kOperations; ++kills) {
    const auto before = sidecar_.size();
    agent_->start();
    ASSERT_TRUE(eventually([&] { return sidecar_.size() > before; })) << agent_->log();
    if (random() % 2 == 0) {  // one or two calls later
      const auto now = sidecar_.size();
      (void)eventually([&] { return sidecar_.size() > now; }, std::chrono::milliseconds(50));
    }
    agent_->kill();
  }
  agent_->start();
  ASSERT_TRUE(eventually([&] { return sidecar_.counts().size() == kOperations; }, seconds(60))) << agent_->log();
  ASSERT_TRUE(eventually([&] { return log().value("waiting", 1) == 0; }));
  int lines = 0;
  for (const auto& [id, count] : sidecar_.counts()) lines += count;
  std::printf("agent killed %d times: 0 of %d entries lost, %d doubles\n", kills, kOperations, lines - kOperations);
  EXPECT_EQ(log().value("refused", 1) + log().value("dropped", 1), 0);
}

TEST_F(ChangeLogOfAgent, ItSendsToAnotherDestinationWithMutualTls) {
  const Certificates certificates;
  certificates.issue("receiver", "receiver", "DNS:localhost,IP:127.0.0.1");
  certificates.issue("agent", "agent");
  const std::string address = "127.0.0.1:" + std::to_string(free_port());
  Sidecar receiver(address, dir_.file("changes.jsonl"),
                   {"--tls-cert", certificates.certificate("receiver"), "--tls-key", certificates.key("receiver"),
                    "--tls-client-ca", certificates.ca()});
  receiver.start();
  make_agent("change_log:\n  address: \"" + address + "\"\n  tls: { cert: \"" + certificates.certificate("agent") +
             "\", key: \"" + certificates.key("agent") + "\", ca: \"" + certificates.ca() + "\" }\n");
  EXPECT_EQ(run({Agent::binary(), "validate", "--config", agent_->config()}, kEnv).code, 0);
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(drift(1));
  EXPECT_TRUE(eventually([&] { return receiver.lines().size() == 1; })) << log().dump() << receiver.log();
}

TEST_F(ChangeLogOfAgent, FilesThatCannotBeUsedAreNamed) {
  make_agent("change_log:\n  address: \"127.0.0.1:1\"\n  tls: { cert: /nonexistent.pem, key: /nonexistent.key }\n");
  for (const char* command : {"validate", "run"}) {
    const Output refused = run({Agent::binary(), command, "--config", agent_->config()}, kEnv);
    EXPECT_EQ(refused.code, 78) << command;
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr("change_log.tls.cert: /nonexistent.pem cannot be read"), HasSubstr("driftd.yaml:")))
        << command;
  }
}

TEST_F(ChangeLogOfAgent, ADamagedCallOfTheSidecarIsNamed) {
  const auto sidecar = [](std::vector<std::string> words) {
    words.insert(words.begin(), {Agent::binary(), "changelog-sidecar"});
    return run(words);
  };
  const Output form = sidecar({"--listen", "somewhere"});
  EXPECT_EQ(form.code, 78);
  EXPECT_THAT(form.err, HasSubstr("expected unix:///PATH with an absolute path, or HOST:PORT"));
  dir_.write("file", "precious");
  const Output file = sidecar({"--listen", "unix://" + dir_.file("file")});
  EXPECT_EQ(file.code, 69);
  EXPECT_THAT(file.err, HasSubstr("exists and is not a socket; remove it or name another path"));
  EXPECT_EQ(read_file(dir_.file("file")), "precious");
  const Output plain = sidecar({"--listen", "127.0.0.1:0"});
  EXPECT_EQ(plain.code, 78);
  EXPECT_THAT(plain.err, HasSubstr("needs mutual TLS"));
  const Output output = sidecar({"--listen", "unix://" + dir_.file("s.sock"), "--output", "/nonexistent/log"});
  EXPECT_EQ(output.code, 69);
  EXPECT_THAT(output.err, HasSubstr("open /nonexistent/log: No such file or directory"));
}

/// What a build with DRIFTD_GRPC=OFF installs: no driftd-grpc beside driftd.
TEST_F(ChangeLogOfAgent, WithoutGrpcBothSidesSayWhatIsMissing) {
  const std::string lone = dir_.file("bin/driftd");
  std::filesystem::create_directories(dir_.path() / "bin");
  std::filesystem::copy_file(Agent::binary(), lone);
  const Output sidecar = run({lone, "changelog-sidecar", "--listen", "unix://" + socket()});
  EXPECT_EQ(sidecar.code, 78);
  EXPECT_THAT(sidecar.err, AllOf(HasSubstr("changelog-sidecar needs gRPC, and " + dir_.file("bin/driftd-grpc")),
                                 HasSubstr("a build with DRIFTD_GRPC=OFF has none")));
  make_agent(section());
  const Output agent = run({lone, "run", "--config", agent_->config()}, kEnv);
  EXPECT_EQ(agent.code, 78);
  EXPECT_THAT(agent.err, AllOf(HasSubstr("the change log needs gRPC"), HasSubstr("or switch change_log off")));
}

}  // namespace
}  // namespace driftd::test
