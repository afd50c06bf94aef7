// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include <filesystem>

namespace driftd::test {
namespace {

using std::chrono::seconds;

}  // namespace

KafkaServer& KafkaLine::shared() {
  static std::unique_ptr<KafkaServer> server;
  if (server) return *server;
  KafkaServer::Options options;
  options.secure = true;
  options.plain_users = {{"driftd", kKafkaPassword}};
  server = std::make_unique<KafkaServer>(options);
  for (const char* principal : {"User:driftd", "User:CN=driftd"}) {
    for (const auto& where : {std::vector<std::string>{"--cluster"}, {"--topic", "*"}}) {
      std::vector<std::string> words{"--add",    "--allow-principal", principal,        "--operation",
                                     "Describe", "--operation",       "DescribeConfigs"};
      words.insert(words.end(), where.begin(), where.end());
      server->acls(words);
    }
  }
  return *server;
}

std::string KafkaLine::backend(const std::string& name, const std::string& more) const {
  return "  - name: " + name + "\n    provider: kafka\n    settings: { bootstrap_servers: \"" + kafka_.tls_address() +
         "\", tls: { ca: \"" + kafka_.ca() +
         "\" }, sasl: { mechanism: PLAIN, username: driftd, password: \"${env:KAFKA_PASSWORD}\" }, " + more + " }\n";
}

void KafkaLine::start(const std::string& backends, const std::vector<std::string>& names,
                      const std::vector<std::string>& kinds, const std::string& plugins) {
  agent_ =
      std::make_unique<Agent>(dir_,
                              "defaults:\n  interval: 500ms\nbackends:\n" + backends +
                                  "sinks:\n  bus: { type: nats, servers: [\"" + nats_.url() + "\"], views: false }\n",
                              std::map<std::string, std::string>{{"KAFKA_PASSWORD", kKafkaPassword}},
                              std::vector<std::string>{Agent::build(plugins)});
  agent_->start();
  const auto established = [&] {
    for (const auto& name : names) {
      for (const auto& kind : kinds) {
        if (!coverage(name, kind).value("established", false)) return false;
      }
    }
    return true;
  };
  ASSERT_TRUE(eventually(established, seconds(60))) << agent_->log();
}

void KafkaLine::make_topic(const std::string& name) const {
  kafka_.topics({"--create", "--topic", name});
  kafka_.await_topic(name, true);
}

void KafkaLine::expect_pending_then_reverted(const std::string& resource, const std::string& field,
                                             const std::function<void()>& change,
                                             const std::function<void()>& back) const {
  change();
  EXPECT_TRUE(arrives({"kafka", resource, "config.updated", "pending", "changed", field}));
  back();
  EXPECT_TRUE(arrives({"kafka", resource, "config.updated", "reverted", {}, field}));
}

nlohmann::json KafkaLine::coverage(const std::string& backend, const std::string& kind) const {
  const auto row = agent_->backend(backend);
  if (!row || !row->contains("coverage")) return nlohmann::json::object();
  for (const auto& one : row->at("coverage")) {
    if (one.value("kind", "") == kind) return one;
  }
  return nlohmann::json::object();
}

bool KafkaLine::any_deleted() const {
  for (const auto& drift : drifts()) {
    if (drift.value("operation", "") == "deleted") return true;
  }
  return false;
}

bool KafkaLine::cycles(const std::string& backend, int more) const {
  const auto now = [&] { return agent_->backend(backend)->at("cycles").get<std::int64_t>(); };
  const auto before = now();
  return eventually([&] { return now() > before + more; }, seconds(60));
}

std::string KafkaLine::everything() {
  std::string out;
  for (const auto& words : std::vector<std::vector<std::string>>{{"drifts", "--all"},
                                                                 {"events"},
                                                                 {"status"},
                                                                 {"resources", "kafka", "--bodies"},
                                                                 {"backends", "-o", "json"}}) {
    const Output output = agent_->cli(words);
    out += output.out + output.err;
  }
  for (const auto& message : stream_contents(nats_.url(), "DRIFT")) out += message.body;
  EXPECT_EQ(agent_->stop(), 0);
  out += agent_->log();
  for (const auto& file : std::filesystem::recursive_directory_iterator(agent_->data_dir())) {
    if (file.is_regular_file()) out += read_file(file.path().string());
  }
  return out;
}

}  // namespace driftd::test
