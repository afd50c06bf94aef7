// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include <sstream>

#include "support/redis.hpp"

namespace driftd::test {
namespace {

/// Splits a shell line into words. It may quote with '…' only.
std::vector<std::string> split_words(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '\'')
      quoted = !quoted;
    else if (c == ' ' && !quoted)
      out.emplace_back();
    else
      out.back().push_back(c);
  }
  return out;
}

constexpr const char* kPassword = "pw-canary-of-kafka";

}  // namespace

void grant_readme(const KafkaServer& server, const std::string& password) {
  std::istringstream lines(readme_grants("kafka", "sh"));
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find("CHANGE-ME");
    if (at != std::string::npos) line.replace(at, 9, password);
    auto words = split_words(line);
    if (words.size() < 3) continue;
    const bool configs = words[0] == "kafka-configs.sh";
    words.erase(words.begin(), words.begin() + 3);  // the tool, --bootstrap-server and its address
    configs ? server.configs(words) : server.acls(words);
  }
}

std::unique_ptr<KafkaServer>& SharedKafka::shared() {
  static std::unique_ptr<KafkaServer> server;
  return server;
}

SharedKafka::SharedKafka() {
  if (shared()) return;
  KafkaServer::Options options;
  options.secure = true;
  options.log_requests = true;
  options.plain_users = {{"driftd", kPassword}, {"plain", "plain-canary-of-kafka"}};
  shared() = std::make_unique<KafkaServer>(options);
  grant_readme(server(), kPassword);
}

nlohmann::json SharedKafka::settings() {
  return {{"bootstrap_servers", shared()->sasl_address()}, {"sasl", sasl("PLAIN", "driftd", "token-1")}};
}

nlohmann::json SharedKafka::sasl(const std::string& mechanism, const std::string& user, const std::string& token) {
  return {{"mechanism", mechanism}, {"username", user}, {"password", token}};
}

std::map<std::string, std::string> SharedKafka::secrets() { return {{"token-1", kPassword}}; }

ProviderProbe SharedKafka::probe(const nlohmann::json& more) const {
  nlohmann::json all = settings();
  all.merge_patch(more);
  return ProviderProbe("providers/kafka.so", all, secrets());
}

void SharedKafka::make_topic(const std::string& name, std::vector<std::string> more) const {
  more.insert(more.begin(), {"--create", "--topic", name});
  server().topics(more);
  server().await_topic(name, true);
}

void SharedKafka::alter_topic(const std::string& name, const std::string& what, bool add) const {
  server().configs(
      {"--alter", "--entity-type", "topics", "--entity-name", name, add ? "--add-config" : "--delete-config", what});
}

void SharedKafka::revoke(std::vector<std::string> binding) const {
  binding.insert(binding.begin(), {"--remove", "--force", "--allow-principal", "User:driftd"});
  server().acls(binding);
}

void SharedKafka::grant(std::vector<std::string> binding) const {
  binding.insert(binding.begin(), {"--add", "--allow-principal", "User:driftd"});
  server().acls(binding);
}

std::string all_texts(const Collected& seen) {
  std::string out = seen.cursor + seen.health.reason;
  for (const auto& r : seen.records) {
    out += r.kind + r.id + r.body + r.status + r.external_name;
    for (const auto& u : r.unread) out += u.path + u.reason;
    for (const auto& [key, value] : r.metadata) out += key + value;
  }
  for (const auto& d : seen.diagnostics) out += d.text + d.right + d.id + d.path;
  return out;
}

}  // namespace driftd::test
