// SPDX-License-Identifier: Apache-2.0
// 1,000 PrismBackends with a real agent: how long until each is in the registry and Discovered, and the memory of the
// operator beside client-go informers on the same objects.
#include <algorithm>
#include <fstream>
#include <future>
#include <iostream>
#include <map>

#include "operator_world.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr int kMany = 1'000;

/// PSS of a process in MiB; -1 if it is gone.
double memory_of(int pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Pss:")) return std::stod(line.substr(4)) / 1024;
  }
  return -1;
}

double quantile(std::vector<double> times, double of) {
  std::sort(times.begin(), times.end());
  return times.at(static_cast<std::size_t>(of * static_cast<double>(times.size() - 1)));
}

struct OperatorMany : OperatorWorld {
  using Times = std::map<std::string, Clock::time_point>;

  static std::string name(int number) { return "redis-" + std::to_string(number); }
  json object(int number) const {
    json out = sample(name(number));
    out["spec"]["discovery"]["service"]["name"] = name(number);
    out["spec"]["discovery"]["secret"]["name"] = name(number);
    return out;
  }
  /// Makes Services and Secrets, by four threads.
  void make_what_they_refer_to() const {
    std::vector<std::future<void>> hands;
    for (int t = 0; t < 4; ++t) {
      hands.push_back(std::async(std::launch::async, [this, t] {
        for (int i = t; i < kMany; i += 4) {
          make_service(name(i), 6379);
          kube.create_secret("infrastructure", name(i), {{"redis-password", "x" + std::to_string(i)}});
        }
      }));
    }
    for (auto& hand : hands) hand.get();
  }
  /// Makes the objects one after the other, as fast as the API server takes them.
  Times make_objects() const {
    Times out;
    for (int i = 0; i < kMany; ++i) {
      out[name(i)] = Clock::now();
      kube.create(backends(), object(i));
    }
    return out;
  }
  void note_discovered(Times& into) const {
    const json list = kube.get(backends());
    for (const auto& each : list.at("items")) {
      if (each.contains("status") && each.at("status").value("phase", "") == "Discovered") {
        into.try_emplace(each.at("metadata").at("name"), Clock::now());
      }
    }
  }
};

TEST_F(OperatorMany, AThousandBackendsAreRegisteredWithinTenSecondsAndDiscoveredFiveSecondsLater) {
  const std::string socket = dir.file("grpc.sock");
  Agent agent(dir, "grpc: { socket: \"" + socket + "\" }\nbackends:\n  - name: cluster\n    interval: 30s\n" +
                       "    provider: k8s\n    settings: { server: \"" + kube.server() + "\", tls: { ca_file: \"" +
                       kube.ca_file() + "\" }, token_file: \"" + kube.file("token") +
                       "\", namespaces: [infrastructure], include: [prism_backend, service, secret] }\n");
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"cluster"}); }, seconds(60))) << agent.log();
  OperatorProcess op(kube, dir, "operator", {"--agent", "unix:" + socket});
  make_what_they_refer_to();
  ASSERT_TRUE(eventually([&] { return op.probe("/readyz") == 200 && op.metric("driftd_operator_leader") == 1; }));

  auto maker = std::async(std::launch::async, [this] { return make_objects(); });
  Times registered, discovered;
  const auto all_are = [&] {
    for (const auto& row : agent.rows({"backends"})) registered.try_emplace(row.at("name"), Clock::now());
    note_discovered(discovered);
    return discovered.size() == kMany;
  };
  EXPECT_TRUE(eventually(all_are, seconds(90))) << registered.size() << " " << discovered.size() << op.log();
  const Times made = maker.get();
  std::vector<double> discovery, sync;
  for (const auto& [name, at] : made) {
    ASSERT_TRUE(registered.contains(name) && discovered.contains(name)) << name;
    discovery.push_back(std::chrono::duration<double>(registered.at(name) - at).count());
    sync.push_back(std::max(0.0, std::chrono::duration<double>(discovered.at(name) - registered.at(name)).count()));
  }
  std::cout << "discovery of 1,000: p50 " << quantile(discovery, 0.5) << " s, p99 " << quantile(discovery, 0.99)
            << " s; from the registry to the status: p50 " << quantile(sync, 0.5) << " s, p99 " << quantile(sync, 0.99)
            << " s\n";
  EXPECT_LE(quantile(discovery, 0.99), 10);
  EXPECT_LE(quantile(sync, 0.99), 5);

  const std::string log = dir.file("informer.log");
  Child informer({"sh", "-c", "exec \"$0\" \"$@\" < /dev/zero", KubeServer::tools() + "/informer", kube.server(),
                  kube.ca_file(), kube.file("token")},
                 {log, {}, {}});
  ASSERT_TRUE(eventually([&] { return read_file(log).find("synced ") != std::string::npos; }, seconds(60)))
      << read_file(log);
  const double ours = memory_of(op.pid()), theirs = memory_of(informer.pid());
  informer.kill();
  std::cout << "memory: operator " << ours << " MiB PSS, client-go informers " << theirs << " MiB PSS, ratio "
            << ours / theirs << "\n";
  EXPECT_GT(ours, 0);
  EXPECT_LT(ours, 40) << "MiB; it was measured before this bound was set";
}

}  // namespace
}  // namespace driftd::test
