// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include <filesystem>
#include <fstream>

namespace driftd::test {

std::string tfstate(int serial, int partitions, const std::string& secret) {
  return R"({"version":4,"terraform_version":"1.9.0","serial":)" + std::to_string(serial) +
         R"(,"lineage":"abc","outputs":{},"resources":[{"mode":"managed","type":"kafka_topic","name":"orders",)" +
         R"("provider":"p","instances":[{"attributes":{"partitions":)" + std::to_string(partitions) +
         R"(,"sasl_password":")" + secret + R"("}}]}]})";
}

std::string tfstate_of(const std::vector<std::string>& topics) {
  std::string resources;
  for (const auto& topic : topics) {
    resources += std::string(resources.empty() ? "" : ",") + R"({"mode":"managed","type":"kafka_topic","name":")" +
                 topic + R"(","provider":"p","instances":[{"attributes":{"partitions":3}}]})";
  }
  return R"({"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"abc","outputs":{},"resources":[)" +
         resources + "]}";
}

void grant_readme(const PostgresServer& server) {
  std::string grants = readme_grants("postgres", "sql");
  grants.replace(grants.find("CHANGE-ME"), 9, "pg-canary");
  server.sql(grants);
}

std::string redis_backend(const RedisServer& server) {
  return "  - name: cache\n    provider: redis\n    settings: { address: \"" + server.address() +
         "\", username: driftd, password: \"${env:REDIS_PASSWORD}\" }\n";
}

std::string terraform_backend(const std::string& path) {
  return "  - name: platform\n    provider: terraform\n    settings: { path: " + path + " }\n";
}

std::string postgres_backend(const PostgresServer& server) {
  return "  - name: orders-db\n    provider: postgres\n    settings: { endpoints: [\"" + server.endpoint() +
         "\"], database: postgres, user: driftd, password: \"${env:PG_PASSWORD}\", sslmode: disable }\n";
}

std::string nats_sink(const NatsServer& server) {
  return "  bus: { type: nats, servers: [\"" + server.url() + "\"], views: false }\n";
}

std::string webhook_sink(const HttpReceiver& receiver) {
  return "  ops: { type: webhook, url: \"" + receiver.url() +
         "\", secret: \"${env:HOOK_SECRET}\", allow_http_loopback: true }\n";
}

void replace_file(const std::string& path, const std::string& text) {
  const TempDir dir;
  const std::string fresh = path + ".new";
  std::filesystem::rename(dir.write("state", text), fresh);
  std::filesystem::rename(fresh, path);
}

std::map<std::string, std::vector<std::string>> events_of_stream(const NatsServer& server) {
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& message : stream_contents(server.url(), "DRIFT")) {
    std::string subject;
    for (const auto& [name, value] : message.headers) {
      if (name == "ce-subject") subject = value;
    }
    out[subject].push_back(message.ce_id);
  }
  return out;
}

std::map<std::string, std::vector<std::string>> events_of_webhook(const HttpReceiver& receiver) {
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& request : receiver.received()) {
    const auto event = nlohmann::json::parse(request.body, nullptr, false);
    if (request.status == 200 && event.is_object()) out[event.value("subject", "")].push_back(event.value("id", ""));
  }
  return out;
}

long kib_of(pid_t pid, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stol(line.substr(name.size()));
  }
  return -1;
}

}  // namespace driftd::test
