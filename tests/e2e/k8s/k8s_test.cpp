// SPDX-License-Identifier: Apache-2.0
// A cluster through the whole line: a Secret changed by its API, a message in JetStream. In a real worker, in its jail.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <iostream>
#include <poll.h>
#include <random>
#include <set>
#include <thread>

#include "driftd/v1/event.pb.h"
#include "support/agent.hpp"
#include "support/kube.hpp"
#include "support/nats.hpp"
#include "support/patience.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr int kMany = 10'000;

struct K8sLine : testing::Test {
  KubeServer kube;
  NatsServer nats;
  TempDir dir;

  static std::string secrets() { return "/api/v1/namespaces/prod/secrets"; }

  Agent agent() const {
    const std::string settings = "{ server: \"" + kube.server() + "\", tls: { ca_file: \"" + kube.ca_file() + "\" }, token_file: \"" +
                                 kube.file("token") + "\", namespaces: [prod], include: [secret, config_map, service] }";
    return Agent(dir, "backends:\n  - name: cluster\n    provider: k8s\n    settings: " + settings +
                          "\nsinks:\n  bus: { type: nats, servers: [\"" + nats.url() + "\"], views: false }\n");
  }
  static void begin(Agent& agent) {
    agent.start();
    ASSERT_TRUE(eventually([&] { return agent.established({"cluster"}); }, seconds(120))) << agent.log();
    // From here on the watch sees everything.
    ASSERT_TRUE(eventually([&] { return agent.backend("cluster")->at("worker").at("state") == "running"; }));
  }
  static v1::BackendChangeEvent event_of(const NatsReceived& message) {
    v1::BackendChangeEvent out;
    EXPECT_TRUE(out.ParseFromString(message.body));
    return out;
  }
  static std::string header(const NatsReceived& message, const std::string& name) {
    for (const auto& [key, value] : message.headers) {
      if (key == name) return value;
    }
    return {};
  }
  void rotate(const std::string& name, const std::string& value) const {
    kube.patch(secrets() + "/" + name, {{"stringData", {{"password", value}}}});
  }
};

std::int64_t pss_kb(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Pss:")) return std::stoll(line.substr(4));
  }
  return -1;
}

TEST_F(K8sLine, ARotatedSecretIsACredentialEventWithItsFieldAndWithoutItsValue) {
  kube.create_namespace("prod");
  kube.create_secret("prod", "db", {{"password", "canary-before"}, {"user", "canary-user"}});
  Agent a = agent();
  ASSERT_NO_FATAL_FAILURE(begin(a));
  const NatsSubscriber events(nats.url(), "backend.>");
  rotate("db", "canary-after");
  ASSERT_TRUE(eventually([&] { return !events.received().empty(); }, seconds(20))) << a.log();
  const NatsReceived message = events.received().front();
  const auto event = event_of(message);
  EXPECT_EQ(message.subject, "backend.cluster.credentials.rotated");
  EXPECT_EQ(event.change_type(), v1::BACKEND_CHANGE_TYPE_CREDENTIAL_ROTATED);
  ASSERT_EQ(event.changed_fields_size(), 1);
  EXPECT_EQ(event.changed_fields(0), "secret/prod/db:data.password");
  EXPECT_EQ(event.metadata().at("namespace"), "prod");
  EXPECT_EQ(event.reconciliation_status(), "auto-applied");
  kube.patch(secrets() + "/db", {{"metadata", {{"labels", {{"new", "label"}}}}}});
  kube.remove(secrets() + "/db");
  ASSERT_TRUE(eventually([&] { return events.received().size() >= 2; }, seconds(20))) << a.log();
  const NatsReceived gone = events.received()[1];
  EXPECT_EQ(event_of(gone).operation(), "deleted") << "a label is no rotation: " << event_of(gone).ShortDebugString();

  std::string everything = a.log() + a.cli({"drifts", "-o", "json"}).out;
  for (const auto& each : events.received()) everything += each.body + json(each.headers).dump();
  a.stop();
  for (const auto& file : std::filesystem::recursive_directory_iterator(a.data_dir())) {
    if (file.is_regular_file()) everything += read_file(file.path().string());
  }
  EXPECT_EQ(everything.find("canary-"), std::string::npos) << "a value left the worker";
}

TEST_F(K8sLine, AHundredRotationsAreEachSeenAtOnce) {
  kube.create_namespace("prod");
  kube.create_secret("prod", "db", {{"password", "canary"}});
  Agent a = agent();
  ASSERT_NO_FATAL_FAILURE(begin(a));
  const NatsSubscriber events(nats.url(), "backend.>");
  rotate("db", "first");  // the watch has begun when this one is seen
  ASSERT_TRUE(eventually([&] { return events.received().size() == 1; }, seconds(40))) << a.log();
  std::vector<double> took;
  for (std::size_t i = 0; i < 100; ++i) {
    const auto began = Clock::now();
    rotate("db", "value-" + std::to_string(i));
    while (events.received().size() < i + 2 && Clock::now() - began < seconds(20 * kPatience)) ::poll(nullptr, 0, 1);
    ASSERT_EQ(events.received().size(), i + 2) << a.log();
    took.push_back(std::chrono::duration<double, std::milli>(Clock::now() - began).count());
  }
  std::sort(took.begin(), took.end());
  std::cout << "Secret patched (request sent) to event at the consumer, 100 changes: p50 " << took[49] << " ms, p99 " << took[98]
            << " ms, worst " << took[99] << " ms\n";
  EXPECT_LT(took[49], 1000);
}

TEST_F(K8sLine, TenThousandSecretsThroughARestartOfTheApiServerNoneMissedNoneTwice) {
  kube.create_namespace("prod");
  std::mt19937 random{7};
  std::string value;
  while (value.size() < 900) value += static_cast<char>('a' + random() % 26);
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&, t] {
      for (int i = t; i < kMany; i += 4) kube.create_secret("prod", "s-" + std::to_string(i), {{"password", value + std::to_string(i)}});
    });
  }
  for (auto& writer : writers) writer.join();
  Agent a = agent();
  const auto began = Clock::now();
  ASSERT_NO_FATAL_FAILURE(begin(a));
  const double listed = std::chrono::duration<double>(Clock::now() - began).count();
  const json worker = a.backend("cluster")->at("worker");
  const std::string pid = worker.at("pid").is_string() ? worker.at("pid").get<std::string>() : worker.at("pid").dump();

  Child informer({"sh", "-c", "exec \"$0\" \"$@\" < /dev/zero", KubeServer::tools() + "/informer", kube.server(), kube.ca_file(),
                  kube.file("token"), "prod"},
                 {dir.file("informer.log"), {}, {}});
  ASSERT_TRUE(eventually([&] { return read_file(dir.file("informer.log")).find("synced 10000") != std::string::npos; }, seconds(120)))
      << read_file(dir.file("informer.log"));
  const std::int64_t ours = pss_kb(pid), theirs = pss_kb(std::to_string(informer.pid())), whole = pss_kb(std::to_string(a.pid()));
  informer.kill();
  std::cout << "10,000 Secrets: baseline in " << listed << " s; PSS worker " << ours / 1024.0 << " MB, agent " << whole / 1024.0
            << " MB, client-go informer " << theirs / 1024.0 << " MB\n";
  EXPECT_GT(ours, 0);
  EXPECT_LT(ours * 3, theirs);

  const NatsSubscriber events(nats.url(), "backend.>");
  const auto seen = [&] {
    std::map<std::string, std::set<std::string>> out;
    for (const auto& message : events.received()) {
      if (message.subject.find(".health.") == std::string::npos) out[header(message, "ce-subject")].insert(message.ce_id);
    }
    return out;
  };
  for (int i = 0; i < 100; ++i) rotate("s-" + std::to_string(i), "one-" + std::to_string(i));
  kube.kill();
  kube.start();
  for (int i = 100; i < 200; ++i) rotate("s-" + std::to_string(i), "two-" + std::to_string(i));
  EXPECT_TRUE(eventually([&] { return seen().size() >= 200; }, seconds(120))) << seen().size() << a.log();
  const auto all = seen();
  int missed = 0, twice = 0;
  for (int i = 0; i < 200; ++i) {
    const auto found = all.find("cluster/secret/prod/s-" + std::to_string(i));
    missed += found == all.end() ? 1 : 0;
    twice += found != all.end() && found->second.size() > 1 ? 1 : 0;
  }
  std::cout << "200 rotations around a restart of the API server: " << missed << " missed, " << twice << " twice, " << all.size()
            << " resources with events\n";
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(twice, 0);
  EXPECT_EQ(all.size(), 200u);
}

}  // namespace
}  // namespace driftd::test
