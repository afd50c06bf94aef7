// SPDX-License-Identifier: Apache-2.0
// 1,000 PrismBackends with a real agent: how long until each is in the registry and Discovered, while all are made at
// once and when there are many already; and the memory of the operator beside client-go informers on the same objects.
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
constexpr int kLate = 10;  ///< of them are made one after the other when the rest is there

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
  void note_discovered(Times& into) const {
    const json list = kube.get(backends());
    for (const auto& each : list.at("items")) {
      if (each.contains("status") && each.at("status").value("phase", "") == "Discovered") {
        into.try_emplace(each.at("metadata").at("name"), Clock::now());
      }
    }
  }
};

/// How long each object took, in seconds.
struct Took {
  std::vector<double> discovery;  ///< until it was in the registry
  std::vector<double> sync;       ///< from there until its status said Discovered
};

void print(const std::string& what, const Took& took) {
  std::cout << what << ": in the registry after p50 " << quantile(took.discovery, 0.5) << " s, p99 "
            << quantile(took.discovery, 0.99) << " s; Discovered after another p50 " << quantile(took.sync, 0.5)
            << " s, p99 " << quantile(took.sync, 0.99) << " s\n";
}

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

  Times made, registered, discovered;
  const auto are_there = [&](std::size_t count) {
    for (const auto& row : agent.rows({"backends"})) registered.try_emplace(row.at("name"), Clock::now());
    note_discovered(discovered);
    return discovered.size() == count;
  };
  const auto took = [&](int from, int to) {
    Took out;
    for (int i = from; i < to; ++i) {
      const auto at = registered.at(name(i));
      out.discovery.push_back(std::chrono::duration<double>(at - made.at(name(i))).count());
      out.sync.push_back(std::max(0.0, std::chrono::duration<double>(discovered.at(name(i)) - at).count()));
    }
    return out;
  };
  auto maker = std::async(std::launch::async, [this] {
    Times out;
    for (int i = 0; i < kMany - kLate; ++i) {
      out[name(i)] = Clock::now();
      kube.create(backends(), object(i));
    }
    return out;
  });
  ASSERT_TRUE(eventually([&] { return are_there(kMany - kLate); }, seconds(90))) << discovered.size() << op.log();
  made = maker.get();
  const Took burst = took(0, kMany - kLate);
  print("990 made at once", burst);
  for (int i = kMany - kLate; i < kMany; ++i) {
    made[name(i)] = Clock::now();
    kube.create(backends(), object(i));
    ASSERT_TRUE(eventually([&] { return are_there(static_cast<std::size_t>(i) + 1); }, seconds(60))) << i << op.log();
  }
  const Took late = took(kMany - kLate, kMany);
  print("10 more, one after the other", late);
  EXPECT_LE(quantile(late.discovery, 0.99), 10);
  EXPECT_LE(quantile(late.sync, 0.99), 5);
  EXPECT_LE(quantile(burst.discovery, 0.99), 60) << "each of them is a commit of its own; docs/testing.md has figures";

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
  EXPECT_LT(ours, 40) << "MiB; 31 were measured";
}

}  // namespace
}  // namespace driftd::test
