// SPDX-License-Identifier: Apache-2.0
// A stop of the agent while a receiver stands still.
#include <gtest/gtest.h>
#include <csignal>
#include <fstream>
#include <set>

#include "support/agent.hpp"
#include "support/certificates.hpp"
#include "support/nats.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;

constexpr int kResources = 400;

/// Writes a state with many resources of 8 KB each, which all have this letter as their text: an event of one has
/// some 35 KB, and is not truncated.
void write_state(const std::string& path, char letter) {
  {
    std::ofstream out(path + ".next", std::ios::trunc);
    out << R"({"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"abc","outputs":{},"resources":[)";
    for (int i = 0; i < kResources; ++i) {
      out << (i == 0 ? "" : ",") << R"({"mode":"managed","type":"kafka_topic","name":"t)" << i
          << R"(","provider":"p","instances":[{"attributes":{"description":")" << std::string(8'000, letter)
          << R"("}}]})";
    }
    out << "]}";
  }
  std::filesystem::rename(path + ".next", path);
}

/// Over TLS, nats.c has no limit of its own for a write to a server that does not read.
class StandingServer : public testing::Test {
 protected:
  StandingServer() {
    certificates_.issue("server", "127.0.0.1", "IP:127.0.0.1");
    server_.emplace("tls { cert_file: \"" + certificates_.certificate("server") + "\", key_file: \"" +
                    certificates_.key("server") + "\" }\n");
    write_state(state_, 'a');
  }
  ~StandingServer() override { server_->signal(SIGCONT); }
  Agent agent() const {
    Agent out(dir_,
              "backends:\n  - name: platform\n    provider: terraform\n    interval: 500ms\n    settings: { path: \"" +
                  state_ + "\" }\nsinks:\n  bus: { type: nats, servers: [\"tls://" + server_->address() +
                  "\"], tls: { ca: \"" + certificates_.ca() + "\" } }\nroutes:\n  - { to: [bus] }\n");
    std::string config = read_file(out.config());
    config.replace(config.find("agent:\n"), 7, "agent:\n  drain: 1s\n");
    dir_.write("driftd.yaml", config);
    return out;
  }
  std::set<std::string> stored() const {
    NatsAccess access;
    access.ca = certificates_.ca();
    access.certificate = certificates_.certificate("server");
    access.key = certificates_.key("server");
    std::set<std::string> out;
    for (const auto& message : stream_contents({server_->url()}, access, "DRIFT")) {
      if (message.id == message.ce_id && message.subject.ends_with(".config.updated")) out.insert(message.ce_id);
    }
    return out;
  }

  TempDir dir_;
  Certificates certificates_;
  std::string state_ = dir_.file("terraform.tfstate");
  std::optional<NatsServer> server_;
};

TEST_F(StandingServer, DoesNotHoldTheAgentBeyondItsTimeAndGetsAllAfterTheNextStart) {
  Agent agent = this->agent();
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"platform"}); }, seconds(60))) << agent.log();
  server_->signal(SIGSTOP);
  write_state(state_, 'b');
  const auto stuck = [&] {  // more bytes than the buffers of the sockets take
    const auto status = agent.ask({"status"});
    return status.is_object() && status.at("sinks").at(0).at("in_flight").get<int>() >= 200;
  };
  ASSERT_TRUE(eventually(stuck, seconds(60))) << agent.ask({"status"}) << agent.log();
  const auto begun = std::chrono::steady_clock::now();
  agent.signal(SIGTERM);
  ASSERT_TRUE(eventually([&] { return !agent.running(); }, seconds(60))) << agent.log();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::printf("a stop while the server stands still: %.1f s\n", took.count());
  EXPECT_LT(took.count(), 12) << "1 s of drain and 5 s for the sink";
  server_->signal(SIGCONT);
  agent.start();
  EXPECT_TRUE(eventually([&] { return stored().size() == kResources; }, seconds(60))) << stored().size() << agent.log();
}

}  // namespace
}  // namespace driftd::test
