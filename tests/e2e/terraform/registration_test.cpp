// SPDX-License-Identifier: Apache-2.0
// A state as a source: its labelled resources define a backend. An apply that adds, changes or removes such a resource
// registers, updates or deletes that backend, under the field names of its registration.
#include <gmock/gmock.h>

#include "driftd/v1/event.pb.h"
#include "support/agent.hpp"
#include "support/nats.hpp"
#include "support/tofu.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class TerraformSource : public testing::Test {
 protected:
  Agent agent(const std::string& more = "") const {
    return Agent(
        dir_,
        "defaults: { interval: 1s }\nbackends:\n  - name: infra\n    provider: terraform\n    settings:\n      path: " +
            tofu_.state_file() +
            "\n      discover:\n        resources:\n          - { resources: terraform_data, labels: "
            "input.value.labels, type: kafka, "
            "endpoint: input.value.brokers, username_attribute: input.value.user, password_attribute: "
            "input.value.password }\n" +
            more + "sinks:\n  bus: { type: nats, servers: [\"" + nats_.url() + "\"], views: false }\n");
  }
  /// A resource of OpenTofu's own provider with the attributes and labels of a Kafka in a cloud.
  static std::string kafka(const std::string& brokers, const std::string& password) {
    return "resource \"terraform_data\" \"bus\" {\n  input = {\n    brokers = \"" + brokers +
           "\"\n    user = \"app\"\n    password = \"" + password +
           "\"\n    labels = { \"prism.io/backend\" = \"true\", \"prism.io/backend-name\" = \"orders\" }\n  }\n}\n";
  }
  void apply(const std::string& resources) {
    tofu_.configure("resource \"terraform_data\" \"other\" { input = 1 }\n" + resources);
    tofu_.apply();
  }
  /// A Kubernetes Secret in the state that defines the backend `name`.
  static json secret(const std::string& name, const std::string& password) {
    const json labels = {
        {"prism.io/backend", "true"}, {"prism.io/backend-name", name}, {"prism.io/backend-type", "redis"}};
    const json attributes = {{"type", "Opaque"},
                             {"data", {{"password", password}}},
                             {"metadata",
                              {{{"name", "cache-login"},
                                {"namespace", "prod"},
                                {"resource_version", "77"},
                                {"labels", labels},
                                {"annotations", {{"prism.io/service", "cache"}, {"prism.io/port", "6379"}}}}}}};
    return {
        {"mode", "managed"},
        {"type", "kubernetes_secret_v1"},
        {"name", "login"},
        {"provider", "provider[\"registry.opentofu.org/hashicorp/kubernetes\"]"},
        {"instances", {{{"schema_version", 0}, {"attributes", attributes}, {"sensitive_attributes", json::array()}}}}};
  }
  /// Pushes a state with OpenTofu, because its provider for Kubernetes is not installed here.
  void push(int serial, const json& resources) {
    const json state = {{"version", 4},
                        {"terraform_version", "1.10.6"},
                        {"serial", serial},
                        {"lineage", "3b1f0c6e-source"},
                        {"outputs", json::object()},
                        {"resources", resources}};
    tofu_.run({"state", "push", files_.write("push.json", state.dump())});
  }
  /// Returns the events of that NATS subject so far.
  static std::vector<v1::BackendChangeEvent> published(const NatsSubscriber& events, const std::string& subject) {
    std::vector<v1::BackendChangeEvent> out;
    for (const auto& message : events.received()) {
      if (message.subject != subject) continue;
      EXPECT_TRUE(out.emplace_back().ParseFromString(message.body));
    }
    return out;
  }
  static bool arrives(const NatsSubscriber& events, const std::string& subject, std::size_t count = 1) {
    return eventually([&] { return published(events, subject).size() >= count; }, seconds(30));
  }
  static std::vector<std::string> fields(const v1::BackendChangeEvent& event) {
    return {event.changed_fields().begin(), event.changed_fields().end()};
  }
  /// Returns everything that left the workers.
  static std::string everything(const Agent& a, const NatsSubscriber& events) {
    std::string out = a.log();
    for (const auto& command : {"drifts", "resources", "events", "backends", "status"})
      out += a.cli({command, "-o", "json"}).out;
    out += read_files(a.data_dir());
    for (const auto& each : events.received()) out += each.body + json(each.headers).dump();
    return out;
  }

  TempDir dir_, files_;  // not in the folder of the configuration, where a worker is restarted when a file is replaced
  Tofu tofu_;
  NatsServer nats_;
};

TEST_F(TerraformSource, AnApplyThatAddsChangesAndRemovesABackendIsThatBackendsEvents) {
  apply("");
  const NatsSubscriber events(nats_.url(), "backend.orders.>");
  Agent a = agent();
  a.start();
  ASSERT_TRUE(eventually([&] { return a.established({"infra"}); }, seconds(60))) << a.log();
  EXPECT_FALSE(a.backend("orders"));

  apply(kafka("b1.example:9092", "canary-one"));
  ASSERT_TRUE(arrives(events, "backend.orders.created")) << a.log() << a.cli({"backends"}).out;
  const auto created = published(events, "backend.orders.created")[0];
  EXPECT_EQ(created.change_type(), v1::BACKEND_CHANGE_TYPE_CREATED);
  EXPECT_EQ(created.source(), "terraform");
  EXPECT_EQ(created.new_state().type(), "kafka");
  EXPECT_EQ(created.new_state().endpoint(), "b1.example:9092");
  ASSERT_TRUE(eventually([&] { return a.established({"orders"}); }, seconds(30))) << a.cli({"backends"}).out << a.log();
  EXPECT_EQ(a.backend("orders")->at("state"), "discovered");

  apply(kafka("b1.example:9092,b2.example:9092", "canary-one"));
  ASSERT_TRUE(arrives(events, "backend.orders.endpoint.changed")) << a.log();
  const auto moved = published(events, "backend.orders.endpoint.changed")[0];
  EXPECT_THAT(fields(moved), ElementsAre("config.kafka.brokers"));
  EXPECT_EQ(moved.source(), "terraform");
  EXPECT_EQ(moved.metadata().at("address"), "terraform_data.bus");
  EXPECT_EQ(moved.metadata().at("origin"), "terraform-state");
  EXPECT_EQ(moved.metadata().at("resource_type"), "terraform_data");
  const json state = json::parse(read_file(tofu_.state_file()));
  EXPECT_EQ(moved.metadata().at("lineage"), state["lineage"]);
  EXPECT_EQ(moved.metadata().at("serial"), state["serial"].dump());

  apply(kafka("b2.example:9092,b1.example:9092", "canary-two"));  // the order of brokers has no meaning
  ASSERT_TRUE(arrives(events, "backend.orders.credentials.rotated")) << a.log();
  const auto rotated = published(events, "backend.orders.credentials.rotated")[0];
  EXPECT_THAT(fields(rotated), ElementsAre("config.kafka.auth.sasl.password"));
  EXPECT_EQ(published(events, "backend.orders.endpoint.changed").size(), 1u);

  apply("");
  ASSERT_TRUE(arrives(events, "backend.orders.deleted")) << a.log() << a.cli({"backends"}).out;
  EXPECT_EQ(published(events, "backend.orders.deleted")[0].change_type(), v1::BACKEND_CHANGE_TYPE_DELETED);
  EXPECT_TRUE(eventually([&] { return !a.backend("orders"); }));
  EXPECT_EQ(published(events, "backend.orders.created").size(), 1u);
  EXPECT_THAT(everything(a, events), Not(HasSubstr("canary-")));
  EXPECT_EQ(a.stop(), 0);
}

TEST_F(TerraformSource, AKubernetesSecretInTheStateSpeaksForTheBackendThatTheConfigReads) {
  tofu_.configure("");
  push(1, json::array({secret("cache", "canary-one")}));
  const std::string own =
      files_.write("own/empty.tfstate",
                   R"({"version":4,"terraform_version":"1.9.0","serial":1,"lineage":"l","outputs":{},"resources":[]})");
  const NatsSubscriber events(nats_.url(), "backend.cache.>");
  Agent a =
      agent("  - name: cache\n    provider: terraform\n    spoken_by: [{ source: infra }]\n    settings: { path: \"" +
            own + "\" }\n");
  a.start();
  ASSERT_TRUE(eventually([&] { return a.established({"infra", "cache"}); }, seconds(60))) << a.log();
  const auto registered = [&] { return a.cli({"resources", "cache"}).out.find("registration") != std::string::npos; };
  ASSERT_TRUE(eventually([&] { return registered() && a.established({"cache"}); }, seconds(30)))
      << a.cli({"resources", "cache"}).out << a.log();
  push(10, json::array({secret("cache", "canary-two")}));
  ASSERT_TRUE(arrives(events, "backend.cache.credentials.rotated")) << a.log() << a.cli({"events"}).out;
  const auto rotated = published(events, "backend.cache.credentials.rotated")[0];
  EXPECT_THAT(fields(rotated), ElementsAre("config.redis.password"));
  EXPECT_EQ(rotated.metadata().at("namespace"), "prod");
  EXPECT_EQ(rotated.metadata().at("kubernetes_secret"), "cache-login");
  EXPECT_EQ(rotated.metadata().at("secret_version"), "77");
  EXPECT_EQ(rotated.metadata().at("address"), "kubernetes_secret_v1.login");
  EXPECT_EQ(rotated.metadata().at("lineage"), "3b1f0c6e-source");
  EXPECT_EQ(a.backend("cache")->at("type"), "terraform") << "the configured provider still reads the backend";

  push(20, json::array());
  ASSERT_TRUE(arrives(events, "backend.cache.config.updated")) << a.log();
  EXPECT_THAT(fields(published(events, "backend.cache.config.updated")[0]), testing::Contains("registration/cache"))
      << "the state does not contain its registration any more";
  EXPECT_TRUE(eventually([&] {
    for (const auto& drift : a.rows({"drifts", "--all"})) {
      if (drift.at("resource") == "registration/cache" && drift.at("operation") == "deleted") return true;
    }
    return false;
  })) << a.cli({"drifts", "--all"}).out;
  EXPECT_TRUE(a.backend("cache"));
  EXPECT_THAT(everything(a, events), Not(HasSubstr("canary-")));
  EXPECT_EQ(a.stop(), 0);
}

}  // namespace
}  // namespace driftd::test
