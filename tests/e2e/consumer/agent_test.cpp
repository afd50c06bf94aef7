// SPDX-License-Identifier: Apache-2.0
// An application that has nothing but a name: the agent says over gRPC where the backend is and what the password is,
// and over NATS that it changed.
#include <gmock/gmock.h>
#include <unistd.h>

#include "driftd/consumer/agent.hpp"
#include "integration/consumer/world.hpp"
#include "redis_slot.hpp"
#include "support/agent.hpp"
#include "support/certificates.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kRotated = "Successfully rotated credentials for slot state_store";

/// The agent watches Redis with a login of its own, and knows that of the application, `app`.
class ConsumerOfAgent : public testing::Test {
 protected:
  ConsumerOfAgent() {
    redis_.grant_readme("driftd-canary");
    dir_.write("monitor", "driftd-canary");
    fs::permissions(dir_.file("monitor"), fs::perms(0600));
    redis_.command({"ACL", "SETUSER", "app", "on", ">canary-0", "~*", "&*", "+@all"});
    password("canary-0");
  }
  void password(const std::string& text) const {
    dir_.write("password.new", text + "\n");
    fs::permissions(dir_.file("password.new"), fs::perms(0600));
    fs::rename(dir_.file("password.new"), dir_.file("password"));
  }
  std::string socket() const { return dir_.file("grpc.sock"); }
  std::string grant() const {
    return "resolve:\n  grants: [{ uid: " + std::to_string(::getuid()) + ", backends: [\"orders-*\"] }]\n";
  }
  Agent agent(const std::string& resolve, const std::string& password = "\"${file:password}\"") const {
    return Agent(
        dir_,
        "defaults:\n  interval: 300ms\nbackends:\n  - name: orders-cache\n    provider: redis\n"
        "    settings: { address: \"" +
            redis_.address() +
            "\", username: driftd, password: \"${file:monitor}\" }\n    credentials: { username: app, password: " +
            password + " }\n    labels: { team: orders }\nsinks:\n  bus: { type: nats, servers: [\"" + nats_.url() +
            "\"] }\ngrpc:\n  socket: " + socket() + "\n" + resolve);
  }
  static void start(Agent& agent) {
    agent.start();
    ASSERT_TRUE(eventually([&] { return agent.established({"orders-cache"}); }, seconds(60))) << agent.log();
  }
  std::shared_ptr<dc::AgentLink> link() const {
    dc::AgentAccess access;
    access.target = "unix:" + socket();
    return *dc::link_agent(access);
  }
  /// `file` is the fallback.
  std::unique_ptr<dc::PatternRunner> runner(const std::string& file = "/nowhere.json",
                                            seconds start_timeout = seconds(30)) {
    const auto link = this->link();
    dc::Resolvers resolvers;
    resolvers.set(dc::CredentialReference::Scheme::agent, dc::agent_resolver(link));
    auto settings = runner_settings(nats_, {{"state_store", "orders-cache", "primary", {}}}, lines_);
    settings.start_timeout = start_timeout;
    return *dc::PatternRunner::create(settings, dc::agent_source(link, dc::ResolvedBy::agent, dc::file_source(file)),
                                      std::make_shared<example::RedisFactory>(), std::move(resolvers));
  }
  static std::shared_ptr<example::RedisSlot> slot(const dc::PatternRunner& runner) {
    return std::dynamic_pointer_cast<example::RedisSlot>(runner.slot("state_store"));
  }

  TempDir dir_;
  RedisServer redis_;
  NatsServer nats_;
  Lines lines_;
};

TEST_F(ConsumerOfAgent, ARotationThroughTheAgentFailsNoOperation) {
  Agent agent = this->agent(grant());
  ASSERT_NO_FATAL_FAILURE(start(agent));
  const auto runner = this->runner();
  const auto started = runner->start();
  ASSERT_TRUE(started) << started.error().message << lines_.text();
  Load load(8, milliseconds(40), [&] {
    const auto connection = slot(*runner);
    return connection && connection->command({"INCR", "orders"}).has_value();
  });
  ASSERT_TRUE(load.goes_on());
  for (int n = 1; n <= 3; ++n) {
    const std::string next = "canary-" + std::to_string(n), former = "canary-" + std::to_string(n - 1);
    redis_.command({"ACL", "SETUSER", "app", ">" + next});  // both are valid, and the agent's event is on its way
    password(next);
    ASSERT_TRUE(eventually([&] { return lines_.count(kRotated) == n; }, seconds(60))) << lines_.text() << agent.log();
    redis_.command({"ACL", "SETUSER", "app", "<" + former});
    ASSERT_TRUE(load.goes_on(200)) << lines_.text();
  }
  load.end();
  EXPECT_EQ(load.failed(), 0) << lines_.text();
  EXPECT_EQ(redis_.command({"GET", "orders"}), std::to_string(load.good())) << "each operation was done once";
  const std::string took =
      metric(runner->metrics(), R"(prism_pattern_credential_rotation_duration_seconds{pattern="order-consumer"})");
  std::printf("rotations through the agent: 3, operations: %d, failed: %d, last rotation in use after %s s\n",
              load.good(), load.failed(), took.c_str());
  EXPECT_THAT(agent.cli({"audit"}).out, HasSubstr("file:password"));
  EXPECT_EQ(agent.stop(), 0);
  std::string all = agent.log() + lines_.text();
  for (const auto& file : fs::directory_iterator(agent.data_dir())) all += read_file(file.path());
  EXPECT_THAT(all, Not(HasSubstr("canary")));
}

TEST_F(ConsumerOfAgent, WhatTheAgentShowsBecomesABackendWithReferencesOnly) {
  Agent agent = this->agent(grant());
  ASSERT_NO_FATAL_FAILURE(start(agent));
  const auto source = dc::agent_source(link());
  const auto backend = source->get("orders-cache", "state_store");
  ASSERT_TRUE(backend) << backend.error().message;
  EXPECT_EQ(backend->type, "redis");
  EXPECT_EQ(backend->endpoint, redis_.address());
  EXPECT_EQ(backend->metadata.at("team"), "orders");
  EXPECT_EQ(backend->credentials,
            (std::map<std::string, std::string>{{"password", "agent:orders-cache#file:password"}}));
  EXPECT_EQ(backend->clear.at("username").reveal(), "app");
  EXPECT_THAT(backend->config_json, Not(HasSubstr("app")));
  EXPECT_EQ(nlohmann::json::parse(backend->config_json)["host"], "127.0.0.1");
  EXPECT_FALSE(backend->provisional);
  const auto own = dc::agent_source(link(), dc::ResolvedBy::application)->get("orders-cache", "state_store");
  EXPECT_EQ(own->credentials.at("password"), "file:password");
  const auto missing = source->get("nothing", "state_store");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, dc::Code::not_found);
  EXPECT_THAT(missing.error().message, HasSubstr("there is no backend 'nothing'"));
}

TEST_F(ConsumerOfAgent, APasswordInClearAndAMissingRightAreErrorsThatSayWhatToDo) {
  {
    Agent agent = this->agent(grant(), "canary-0");
    ASSERT_NO_FATAL_FAILURE(start(agent));
    const auto backend = dc::agent_source(link())->get("orders-cache", "state_store");
    ASSERT_FALSE(backend);
    EXPECT_THAT(backend.error().message, HasSubstr("'password' is in clear text"));
    EXPECT_EQ(agent.stop(), 0);
  }
  Agent agent = this->agent("");
  ASSERT_NO_FATAL_FAILURE(start(agent));
  const auto started = this->runner("/nowhere.json", seconds(2))->start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("failed to bind slot state_store"));
  EXPECT_THAT(started.error().message, HasSubstr("does not hold the right 'resolve'"));
}

TEST_F(ConsumerOfAgent, AnAgentThatIsKilledStopsNoApplicationAndIsFollowedAgainWhenItIsBack) {
  Agent agent = this->agent(grant());
  ASSERT_NO_FATAL_FAILURE(start(agent));
  const auto runner = this->runner();
  ASSERT_TRUE(runner->start()) << lines_.text();
  Load load(4, milliseconds(20), [&] {
    const auto connection = slot(*runner);
    return connection && connection->command({"INCR", "orders"}).has_value();
  });
  ASSERT_TRUE(load.goes_on());
  agent.kill();
  runner->report_broken("state_store", slot(*runner));  // it must connect without the agent
  ASSERT_TRUE(eventually([&] { return lines_.contain("Successfully reconnected slot state_store"); }, seconds(30)))
      << lines_.text();
  ASSERT_TRUE(load.goes_on(100)) << lines_.text();
  redis_.command({"ACL", "SETUSER", "app", ">canary-1"});
  password("canary-1");
  ASSERT_NO_FATAL_FAILURE(start(agent));  // finds what happened meanwhile, and publishes it
  ASSERT_TRUE(eventually([&] { return lines_.contain(kRotated); }, seconds(60))) << lines_.text() << agent.log();
  redis_.command({"ACL", "SETUSER", "app", "<canary-0"});
  ASSERT_TRUE(load.goes_on(100)) << lines_.text();
  load.end();
  EXPECT_EQ(load.failed(), 0) << lines_.text();
}

TEST_F(ConsumerOfAgent, WithoutAnAgentTheFileIsUsedUntilThereIsOne) {
  redis_.command({"ACL", "SETUSER", "by-file", "on", ">file-canary", "~*", "&*", "+@all"});
  const std::string file =
      dir_.write("backends.json", nlohmann::json{{"state_store",
                                                  {{"type", "redis"},
                                                   {"endpoint", redis_.address()},
                                                   {"config", {{"username", "by-file"}, {"password", "file-canary"}}}}}}
                                      .dump());
  const auto runner = this->runner(file);
  ASSERT_TRUE(runner->start()) << lines_.text();
  Load load(2, milliseconds(20), [&] {
    const auto connection = slot(*runner);
    return connection && connection->command({"INCR", "orders"}).has_value();
  });
  ASSERT_TRUE(load.goes_on());
  Agent agent = this->agent(grant());
  ASSERT_NO_FATAL_FAILURE(start(agent));
  ASSERT_TRUE(eventually([&] { return lines_.contain("Successfully reconnected slot state_store"); }, seconds(60)))
      << lines_.text();
  redis_.command({"ACL", "DELUSER", "by-file"});  // ends its connections, too
  ASSERT_TRUE(load.goes_on(100)) << lines_.text();
  load.end();
  EXPECT_EQ(load.failed(), 0) << lines_.text();
  EXPECT_EQ(lines_.count("Successfully reconnected"), 1) << "what is no longer provisional is left alone";
}

TEST_F(ConsumerOfAgent, AnAgentThatIsAwayCostsNothingAndIsAskedAgain) {
  dc::AgentAccess access;
  access.target = "unix:" + socket();
  access.breaker_first = access.breaker_max = milliseconds(500);
  const auto source = dc::agent_source(*dc::link_agent(access), dc::ResolvedBy::agent, nullptr);
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 1'000; ++i) ASSERT_FALSE(source->get("orders-cache", "state_store"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(5)) << "an open circuit does not wait";
  EXPECT_THAT(source->get("orders-cache", "x").error().message, HasSubstr(socket()));
  Agent agent = this->agent(grant());
  ASSERT_NO_FATAL_FAILURE(start(agent));
  EXPECT_TRUE(eventually([&] { return source->get("orders-cache", "state_store").has_value(); }));
}

TEST_F(ConsumerOfAgent, FromAnotherMachineItIsTlsWithACertificateOrAToken) {
  Certificates authority, stranger;
  authority.issue("agent", "localhost", "DNS:localhost");
  authority.issue("runner", "order-runner", "DNS:order-runner");
  const int port = free_port();
  const std::string token = dir_.write("token", "0123456789abcdef0123");
  fs::permissions(token, fs::perms(0600));
  Agent agent =
      this->agent("  listen: \"127.0.0.1:" + std::to_string(port) +
                  "\"\n  tls: { cert: " + authority.certificate("agent") + ", key: " + authority.key("agent") +
                  ", client_ca: " + authority.ca() + " }\n  tokens: [{ name: ci, token: \"${file:" + token +
                  "}\" }]\nresolve:\n  grants:\n    - { certificate: order-runner, backends: [orders-cache] }\n"
                  "    - { token: ci, backends: [orders-cache] }\n");
  ASSERT_NO_FATAL_FAILURE(start(agent));
  dc::AgentAccess access;
  access.target = "localhost:" + std::to_string(port);
  access.ca = authority.ca();
  const auto value = [](const dc::AgentAccess& given) {
    const auto link = *dc::link_agent(given);
    const auto reference = dc::parse_reference("agent:orders-cache#file:password");
    const auto values = dc::agent_resolver(link)->resolve({*reference}, seconds(5));
    return values ? values->front().reveal() : "error: " + values.error().message;
  };
  EXPECT_THAT(value(access), HasSubstr("neither a client certificate nor a token"));
  auto by_token = access;
  by_token.token_file = token;
  EXPECT_EQ(value(by_token), "canary-0");
  auto by_certificate = access;
  by_certificate.cert = authority.certificate("runner");
  by_certificate.key = authority.key("runner");
  EXPECT_EQ(value(by_certificate), "canary-0");
  by_certificate.ca = stranger.ca();
  EXPECT_THAT(value(by_certificate), HasSubstr("error: ")) << "another agent's certificate";
}

/// The program of docs/consume.md as a user gets it: installed libraries, found by pkg-config.
TEST_F(ConsumerOfAgent, TheInstalledExampleRunsWithANameAndASocketAlone) {
  if (std::string(DRIFTD_SANITIZED) != "")
    GTEST_SKIP() << "LOUD: the installed library needs the sanitizer's flags, which pkg-config does not give";
  const std::string prefix = dir_.file("prefix"), source = std::string(DRIFTD_SOURCE_DIR) + "/examples/consumers/cpp/",
                    program = dir_.file("order_consumer");
  const Output installed =
      run({"cmake", "--install", DRIFTD_BINARY_DIR, "--component", "consumer", "--prefix", prefix}, {}, seconds(60));
  ASSERT_EQ(installed.code, 0) << installed.err;
  const std::string build = "export PKG_CONFIG_PATH=$(dirname $(find " + prefix +
                            " -name driftd_consumer_grpc.pc)) && c++ -std=c++20 -DORDERS_BY_AGENT " + source +
                            "main.cpp " + source + "redis_slot.cpp -o " + program +
                            " $(pkg-config --cflags --libs driftd_consumer_grpc hiredis)";
  const Output built = run({"sh", "-c", build}, {}, seconds(200));
  ASSERT_EQ(built.code, 0) << built.err;
  Agent agent = this->agent(grant());
  ASSERT_NO_FATAL_FAILURE(start(agent));
  Child child({program, nats_.url(), "orders-cache", dir_.file("checkpoint.json")},
              {dir_.file("orders.log"), {{"DRIFTD_AGENT", "unix:" + socket()}}, {}});
  EXPECT_TRUE(eventually(
      [&] {
        return std::atoi(redis_.command({"GET", "orders"}).c_str()) > 20;
      },
      seconds(40)))
      << read_file(dir_.file("orders.log"));
}

TEST(AgentAccess, WhatCannotWorkIsRefusedByItsMember) {
  const auto said = [](dc::AgentAccess access) {
    const auto link = dc::link_agent(std::move(access));
    return link ? std::string("accepted") : link.error().message;
  };
  EXPECT_THAT(said({}), HasSubstr("'target'"));
  EXPECT_THAT(said({.target = "localhost"}), HasSubstr("'target'"));
  EXPECT_THAT(said({.target = "localhost:7481", .cert = "/dev/null"}), HasSubstr("only one of 'cert' and 'key'"));
  EXPECT_THAT(said({.target = "localhost:7481", .ca = "/nowhere.pem"}), HasSubstr("/nowhere.pem"));
  EXPECT_THAT(said({.target = "unix:/x", .timeout = milliseconds(0)}), HasSubstr("'timeout'"));
  EXPECT_EQ(said({.target = "unix:/x"}), "accepted");
}

}  // namespace
}  // namespace driftd::test
