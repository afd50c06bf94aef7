// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "support/kafka.hpp"
#include "system.hpp"

namespace driftd::test {
namespace {

constexpr const char* kPassword = "kafka-canary-of-enforcement";

void change_right(const char* verb, const std::vector<std::string>& what);

KafkaServer& server() {
  static std::unique_ptr<KafkaServer> one;
  if (one) return *one;
  KafkaServer::Options options;
  options.secure = true;
  options.plain_users = {{"driftd", kPassword}};
  one = std::make_unique<KafkaServer>(options);
  change_right("--add", {"--operation", "Describe", "--operation", "DescribeConfigs", "--cluster"});
  change_right("--add", {"--operation", "Describe", "--operation", "DescribeConfigs", "--topic", "*"});
  return *one;
}

void change_right(const char* verb, const std::vector<std::string>& what) {
  std::vector<std::string> words{verb, "--allow-principal", "User:driftd"};
  if (std::string(verb) == "--remove") words.emplace_back("--force");
  words.insert(words.end(), what.begin(), what.end());
  server().acls(words);
}

/// A topic whose lag of compaction is put back.
class KafkaTopic final : public System {
 public:
  KafkaTopic() {
    static int number = 0;
    topic_ = "orders-" + std::to_string(++number);
    server().topics({"--create", "--topic", topic_, "--config", "min.compaction.lag.ms=7000"});
    server().await_topic(topic_, true);
  }
  ~KafkaTopic() override { grant(false); }
  std::string backend() const override {
    return "provider: kafka, settings: { bootstrap_servers: \"" + server().sasl_address() +
           "\", sasl: { mechanism: PLAIN, username: driftd, password: \"${env:KAFKA_PASSWORD}\" }, include: [\"topic/" +
           topic_ + "\"] }";
  }
  std::map<std::string, std::string> secrets() const override { return {{"KAFKA_PASSWORD", kPassword}}; }
  std::string resource() const override { return "topic/" + topic_; }
  std::string path() const override { return "config[\"min.compaction.lag.ms\"]"; }
  std::string set_value(int number) override {
    const std::string value = std::to_string(7000 + number);
    configure("min.compaction.lag.ms=" + value);
    return value;
  }
  std::string value() const override {
    if (removed_) return names().find(topic_ + "\n") == std::string::npos ? "" : "it is there again";
    const std::string all = server().configs({"--describe", "--entity-type", "topics", "--entity-name", topic_});
    const auto at = all.find("min.compaction.lag.ms=");
    if (at == std::string::npos) return {};
    const auto begin = at + std::string("min.compaction.lag.ms=").size();
    return all.substr(begin, all.find_first_not_of("0123456789", begin) - begin);
  }
  void remove() override {
    server().topics({"--delete", "--topic", topic_});
    removed_ = true;
    server().await_topic(topic_, false);
  }
  std::string names() const override { return server().topics({"--list"}); }
  void grant(bool may_write) override {
    if (may_write == granted_) return;
    granted_ = may_write;
    change_right(may_write ? "--add" : "--remove", {"--operation", "AlterConfigs", "--topic", "*"});
  }
  std::string missing_right() const override { return "AlterConfigs on Topic " + topic_; }
  void set_and_refuse() override { configure("min.compaction.lag.ms=50,max.compaction.lag.ms=100"); }
  std::string refusal() const override { return "INVALID_CONFIG"; }

 private:
  void configure(const std::string& what) const {
    server().configs({"--alter", "--entity-type", "topics", "--entity-name", topic_, "--add-config", what});
  }
  std::string topic_;
  bool granted_ = false, removed_ = false;
};

}  // namespace

std::unique_ptr<System> make_kafka() { return std::make_unique<KafkaTopic>(); }

}  // namespace driftd::test
