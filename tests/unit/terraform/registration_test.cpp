// SPDX-License-Identifier: Apache-2.0
// Registrations of backends in a state: the field names, and values of secrets only in sensitive paths.
#include <gmock/gmock.h>

#include "states.hpp"
#include "terraform/discover.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// Returns the registrations in a state, and why some are missing.
struct Registrations final : StateVisitor {
  Reading reading;
  Settings settings;
  std::vector<sdk::Record> records;
  std::vector<sdk::Backend> backends;
  std::vector<std::string> why;

  Registrations(const std::string& text, Settings given = {}) : settings(std::move(given)) {
    const Spool spool = spool_of(text);
    reading.head = read_head(spool);
    Finder finder(reading, settings);
    finder_ = &finder;
    read_contents(spool, reading.head, *this);
    backends = finder.backends;
    for (const auto& each : finder.diagnostics) why.push_back(each.text);
  }
  bool instance(const Instance& instance) override {
    if (const auto found = finder_->find(instance)) records.push_back(registration_of(reading, instance, *found));
    return true;
  }
  bool output(const std::string&, const json&) override { return true; }
  json body() const { return records.empty() ? json() : json::parse(records[0].body); }

 private:
  Finder* finder_ = nullptr;
};

std::string secret_with(const std::string& type, const std::string& annotations, const std::string& rest) {
  return of_type(
      "kubernetes_secret_v1",
      R"({"metadata":[{"name":"login","namespace":"prod","resource_version":"77","annotations":{)" + annotations +
          R"(},"labels":{"prism.io/backend":"true","prism.io/backend-name":"orders","prism.io/backend-type":")" + type +
          R"("}}],)" + rest + "}");
}

TEST(TerraformRegistration, OfKafkaHasBrokersAndSaslUnderTheNamesOfTheRfc) {
  const Registrations seen(secret_with("kafka", R"("prism.io/endpoint":"b1.example:9092, b2.example:9092")",
                                       R"("data":{"username":"app","password":"canary"})"));
  ASSERT_EQ(seen.records.size(), 1u);
  const auto& record = seen.records[0];
  EXPECT_EQ(record.kind, "registration");
  EXPECT_EQ(record.id, "orders");
  EXPECT_EQ(record.backend, "orders");
  EXPECT_EQ(seen.body(),
            json::parse(R"({"type":"kafka","capabilities":[],"discovery":{"secret":{"name":"login","namespace":"prod"}},
    "config":{"kafka":{"brokers":["b1.example:9092","b2.example:9092"],"auth":{"sasl":{"username":"app","password":"canary"}}}}})"));
  EXPECT_THAT(record.sensitive, ElementsAre("config.kafka.auth.sasl.username", "config.kafka.auth.sasl.password"));
  EXPECT_EQ(record.metadata.at("address"), "kubernetes_secret_v1.it");
  EXPECT_EQ(record.metadata.at("serial"), "7");
  EXPECT_EQ(record.metadata.at("lineage"), "abc");
  EXPECT_EQ(record.metadata.at("kubernetes_secret"), "login");
  EXPECT_EQ(record.metadata.at("namespace"), "prod");
  EXPECT_EQ(record.metadata.at("secret_version"), "77");
  EXPECT_THAT(json(record.metadata).dump(), Not(HasSubstr("canary")));
}

TEST(TerraformRegistration, OfOthersHasHostPortAndTheKeysThatTheAnnotationsName) {
  const Registrations seen(secret_with("postgresql",
                                       R"("prism.io/service":"pg","prism.io/port":"5433","prism.io/password-key":"pw")",
                                       R"("data":{"username":"app"},"binary_data":{"pw":"Y2FuYXJ5"})"));
  EXPECT_EQ(
      seen.body()["config"],
      json::parse(
          R"({"postgres":{"host":"pg.prod.svc.cluster.local","port":5433,"username":"app","password":"Y2FuYXJ5"}})"));
  EXPECT_EQ(seen.body()["discovery"]["service"], json::parse(R"({"name":"pg","namespace":"prod","port":5433})"));
  EXPECT_THAT(seen.records[0].sensitive, ElementsAre("config.postgres.username", "config.postgres.password"));
}

TEST(TerraformRegistration, OfAWriteOnlySecretHasUnknownCredentialsNotDeletedOnes) {
  const Registrations seen(secret_with("redis", "", R"("data":null,"data_wo":null,"data_wo_revision":2)"));
  ASSERT_EQ(seen.records.size(), 1u);
  ASSERT_EQ(seen.records[0].unread.size(), 2u);
  EXPECT_EQ(seen.records[0].unread[1].path, "config.redis.password");
  EXPECT_THAT(seen.records[0].unread[1].reason, HasSubstr("write-only"));
  EXPECT_EQ(seen.body()["config"], json::parse(R"({"redis":{}})"));
}

TEST(TerraformRegistration, OfAConfiguredTypeIsMadeOfTheAttributesThatTheSettingsName) {
  Settings settings;
  settings.discover.push_back(
      {"aws_msk_cluster", "tags", "bootstrap_brokers", {}, "kafka_version", "kafka", "user.name", "user.password"});
  const std::string state = of_type(
      "aws_msk_cluster",
      R"({"bootstrap_brokers":"b-1:9092,b-2:9092","kafka_version":"3.6.0","user":[{"name":"app","password":"canary"}],
    "tags":{"prism.io/backend":"true","prism.io/backend-name":"bus"}})");
  const Registrations seen(state, settings);
  EXPECT_EQ(seen.body(), json::parse(R"({"type":"kafka","version":"3.6.0","capabilities":[],"discovery":{},
    "config":{"kafka":{"brokers":["b-1:9092","b-2:9092"],"auth":{"sasl":{"username":"app","password":"canary"}}}}})"));
  EXPECT_THAT(seen.backends[0].endpoints, ElementsAre("b-1:9092", "b-2:9092"));
}

TEST(TerraformRegistration, AnAddressTellsNoUserAndNoPassword) {
  Settings settings;
  settings.discover.push_back({"x_db", "labels", "url", "port", {}, "postgresql", {}, {}});
  const auto endpoints = [&](const std::string& url) {
    const Registrations seen(
        of_type("x_db", R"({"url":)" + url +
                            R"(,"port":5432,"labels":{"prism.io/backend":"true","prism.io/backend-name":"db"}})"),
        settings);
    if (seen.backends.empty()) return std::pair(seen.why, json());
    return std::pair(seen.backends[0].endpoints, seen.body()["config"]["postgres"]);
  };
  const auto [plain, config] = endpoints(R"("postgres://app:canary@db.example:5433/orders?password=canary")");
  EXPECT_THAT(plain, ElementsAre("postgres://db.example:5433/orders"));
  EXPECT_EQ(config, json::parse(R"({"host":"db.example","port":5433})"));
  EXPECT_THAT(endpoints(R"("app:canary@db.example")").first, ElementsAre("db.example:5432"));
  EXPECT_THAT(endpoints(R"("[fd00::1]")").first, ElementsAre("[fd00::1]:5432"));
  EXPECT_EQ(endpoints(R"("[fd00::1]")").second, json::parse(R"({"host":"[fd00::1]","port":5432})"));
  EXPECT_THAT(endpoints(R"(["a:1", "b:2"])").first, ElementsAre("a:1", "b:2"));
  EXPECT_THAT(endpoints("null").first, IsEmpty());
  for (const auto* url : {R"("amqp://app:can/ary@db.example:5433")", R"("amqp://app:can#ary@db.example:5433")",
                          R"("amqp://app:can?ary@db.example:5433")", R"("redis://db.example:6379?password=p@canary")",
                          R"("https://app:12/canary@db.example")"}) {
    EXPECT_THAT(endpoints(url).first,
                ElementsAre(StartsWith("backend db: url cannot be told without what may be a password")))
        << url;
  }
  EXPECT_THAT(endpoints(R"("db.example:6380,password=canary,ssl=True")").first, ElementsAre("db.example:6380"));
  for (const auto* url : {R"("amqp://app:can,ary@db.example:5433")", R"("amqp://app:12,can,ary@db.example:5433")"}) {
    EXPECT_THAT(endpoints(url).first, ElementsAre("db.example:5433")) << url;
  }
  EXPECT_THAT(endpoints(R"("a:1, app:canary@b:2, c:3")").first, ElementsAre("b:2", "c:3"));
  EXPECT_THAT(endpoints(R"("2a01:4f8::1")").first, ElementsAre("2a01:4f8::1")) << "an attribute with an IPv6 address";
  EXPECT_THAT(endpoints(R"("https://db.example/orders")").first, ElementsAre("https://db.example/orders"));
  EXPECT_EQ(endpoints(R"("redis:///0")").second, json::parse(R"({"host":""})"));
}

TEST(TerraformRegistration, AnAddressThatTheStateCallsSecretIsNotTold) {
  Settings settings;
  settings.discover.push_back({"azurerm_redis_cache", "tags", "primary_connection_string", {}, {}, "redis", {}, {}});
  const Registrations seen(
      of_type(
          "azurerm_redis_cache",
          R"({"primary_connection_string":"h:6380","tags":{"prism.io/backend":"true","prism.io/backend-name":"cache"}})"),
      settings);
  EXPECT_THAT(seen.backends, IsEmpty());
  EXPECT_THAT(seen.why, ElementsAre("backend cache: primary_connection_string is secret and is not told; name another "
                                    "attribute in the discovery of azurerm_redis_cache"));

  settings.discover.assign({{"x_db", "labels", "cluster.host", {}, {}, "redis", {}, "cluster.password"}});
  const std::string beside =
      R"({"cluster":[{"host":"h:1","password":"canary"}],"labels":{"prism.io/backend":"true","prism.io/backend-name":"db"}})";
  EXPECT_THAT(Registrations(of_type("x_db", beside), settings).backends.at(0).endpoints, ElementsAre("h:1"))
      << "a password beside it hides it not";
  settings.discover.assign({{"x_db", "labels", "cluster.password", {}, {}, "redis", {}, {}}});
  EXPECT_THAT(Registrations(of_type("x_db", beside), settings).backends, IsEmpty());
}

TEST(TerraformRegistration, OfAChartNamesItsReleaseAndHoldsNoSecret) {
  const Registrations seen(of_type(
      "helm_release",
      R"({"name":"bus","namespace":"prod","chart":"kafka","metadata":[{"chart":"kafka","version":"31.0.0","app_version":"3.9.0",
    "values":"{\"commonLabels\":{\"prism.io/backend\":\"true\"},\"sasl\":{\"password\":\"canary\"}}"}]})"));
  EXPECT_EQ(seen.body(), json::parse(R"({"type":"kafka","version":"3.9.0","capabilities":[],
    "discovery":{"helm_release":{"name":"bus","namespace":"prod","chart":"kafka","version":"31.0.0"},"service":{"name":"bus-kafka","namespace":"prod","port":9092}},
    "config":{"kafka":{"brokers":["bus-kafka.prod.svc.cluster.local:9092"]}}})"));
}

TEST(TerraformRegistration, ANameThatTwoResourcesBearIsToldOnceAndNamed) {
  const std::string labels =
      R"("metadata":[{"name":"n","labels":{"prism.io/backend":"true","prism.io/backend-name":"one","prism.io/backend-type":"redis"}}])";
  std::string state = of_type("kubernetes_secret", "{" + labels + "}");
  const std::string second =
      R"(,{"mode":"managed","type":"kubernetes_secret","name":"other","provider":"p","instances":[{"attributes":{)" +
      labels + "}}]}";
  state.insert(state.rfind("]}"), second);
  const Registrations seen(state);
  EXPECT_EQ(seen.records.size(), 1u);
  EXPECT_THAT(seen.why, ElementsAre("two resources are labelled as backend one"));
}

}  // namespace
}  // namespace driftd::terraform
