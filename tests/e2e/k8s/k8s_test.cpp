// SPDX-License-Identifier: Apache-2.0
// A Secret that is changed by the API of Kubernetes becomes a message in JetStream.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "line.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

TEST_F(K8sLine, ARotatedSecretIsACredentialEventWithItsFieldAndWithoutItsValue) {
  kube.create_secret("prod", "db", {{"password", "canary-before"}, {"user", "canary-user"}});
  Agent a = agent();
  ASSERT_NO_FATAL_FAILURE(begin(a));
  const NatsSubscriber events(nats.url(), "backend.>");
  // Each event once, because one that is acknowledged late is published again. Without the events of the start, which a
  // sink that connects late may publish after the subscription.
  const auto published = [&events] {
    std::vector<NatsReceived> out;
    std::set<std::string> seen;
    for (const auto& each : events.received()) {
      const bool start = each.subject == "backend.cluster.created" || each.subject == "backend.cluster.health.changed";
      if (!start && seen.insert(each.ce_id).second) out.push_back(each);
    }
    return out;
  };
  rotate("db", "canary-after");
  ASSERT_TRUE(eventually([&] { return !published().empty(); }, seconds(20))) << a.log();
  const NatsReceived message = published().front();
  const auto event = event_of(message);
  EXPECT_EQ(message.subject, "backend.cluster.credentials.rotated");
  EXPECT_EQ(event.change_type(), v1::BACKEND_CHANGE_TYPE_CREDENTIAL_ROTATED);
  ASSERT_EQ(event.changed_fields_size(), 1);
  EXPECT_EQ(event.changed_fields(0), "secret/prod/db:data.password");
  EXPECT_EQ(event.metadata().at("namespace"), "prod");
  EXPECT_EQ(event.reconciliation_status(), "auto-applied");
  kube.patch(secrets() + "/db", {{"metadata", {{"labels", {{"new", "label"}}}}}});
  ASSERT_TRUE(eventually([&] { return published().size() >= 2; }, seconds(20))) << a.log();
  const auto labelled = event_of(published()[1]);
  EXPECT_EQ(labelled.change_type(), v1::BACKEND_CHANGE_TYPE_CONFIG_DRIFT_DETECTED) << "a new label is no rotation";
  ASSERT_EQ(labelled.changed_fields_size(), 1);
  EXPECT_EQ(labelled.changed_fields(0), "secret/prod/db:labels");
  kube.remove(secrets() + "/db");
  ASSERT_TRUE(eventually([&] { return published().size() >= 3; }, seconds(20))) << a.log();
  EXPECT_EQ(event_of(published()[2]).operation(), "deleted");

  std::string everything = a.log() + a.cli({"drifts", "-o", "json"}).out;
  for (const auto& each : events.received()) everything += each.body + json(each.headers).dump();
  a.stop();
  for (const auto& file : std::filesystem::recursive_directory_iterator(a.data_dir())) {
    if (file.is_regular_file()) everything += read_file(file.path().string());
  }
  EXPECT_EQ(everything.find("canary-"), std::string::npos) << "a secret left the worker";
}

}  // namespace
}  // namespace driftd::test
