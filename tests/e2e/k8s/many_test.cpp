// SPDX-License-Identifier: Apache-2.0
// 10,000 Secrets: agent and worker need less than a third of an informer's memory, and nothing is missed or told twice
// while the API server restarts, while the watch is cut off, and when etcd forgot where the watch was.
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "line.hpp"
#include "support/stream_events.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr int kMany = 10'000;
/// As a kubernetes.io/tls Secret has: a certificate of 1.9 KB and a key of 1.7 KB in PEM. DRIFTD_SECRET_BYTES: another.
constexpr std::size_t kSecretBytes = 3'600;

/// Megabytes: its share of all pages, those that are only its own and cannot be dropped, and the most that it ever had.
struct Memory {
  double pss = -1, anonymous = -1, peak = -1;
};

/// Megabytes of a line `Name:  123 kB`; -1: there is none.
double megabytes(const std::string& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1)) / 1024;
  }
  return -1;
}

Memory memory(const std::string& pid) {
  const std::string pages = "/proc/" + pid + "/smaps_rollup";
  return {megabytes(pages, "Pss"), megabytes(pages, "Pss_Anon"), megabytes("/proc/" + pid + "/status", "VmHWM")};
}

void print(const std::string& what, const Memory& of) {
  std::cout << "  " << what << ": PSS " << of.pss << " MB, of it anonymous " << of.anonymous << " MB; most RSS "
            << of.peak << " MB\n";
}

struct K8sMany : K8sLine {
  /// What an event must say of each Secret, by its number: `changed auto-applied`.
  using Expectation = std::map<int, std::string>;

  K8sMany() {
    std::mt19937 random{7};
    const char* other = std::getenv("DRIFTD_SECRET_BYTES");
    const std::size_t bytes = other != nullptr ? std::stoul(other) : kSecretBytes;
    while (value.size() < bytes) value += static_cast<char>('a' + random() % 26);
    std::vector<std::future<void>> writers;
    for (int t = 0; t < 4; ++t) {
      writers.push_back(std::async(std::launch::async, [this, t] {
        for (int i = t; i < kMany; i += 4) create(i);
      }));
    }
    for (auto& writer : writers) writer.get();
  }
  std::string value;

  static std::string name(int number) { return "s-" + std::to_string(number); }
  void create(int number) const {
    kube.create_secret("prod", name(number), {{"password", value + std::to_string(number)}});
  }
  void rotate_all(int from, int to, const std::string& value) const {
    for (int i = from; i < to; ++i) rotate(name(i), value + std::to_string(i));
  }
  static void expect(Expectation& of, int from, int to, const std::string& what) {
    for (int i = from; i < to; ++i) of[i] = what;
  }
  /// Events about Secrets in the stream, after the one at `from`: Secret → `operation status` of each.
  std::map<std::string, std::vector<std::string>> told(std::size_t from) const {
    std::map<std::string, std::vector<std::string>> out;
    const auto all = stream_events(nats);
    for (std::size_t i = from; i < all.size(); ++i) {
      if (all[i].resource_kind() != "secret") continue;
      out[all[i].resource_id()].push_back(all[i].operation() + " " + all[i].reconciliation_status());
    }
    return out;
  }
  /// Waits for that many and compares: each once, as expected, and nothing else.
  void expect_told(const Agent& agent, std::size_t from, const Expectation& expected, const std::string& of) const {
    EXPECT_TRUE(eventually([&] { return told(from).size() >= expected.size(); }, seconds(180))) << agent.log();
    // Something that comes last, so that a second word about the others would have come before it.
    rotate(name(kMany - 1), of);
    const std::string last = "prod/" + name(kMany - 1);
    EXPECT_TRUE(eventually([&] { return told(from).contains(last); }, seconds(180))) << "the last word did not come\n"
                                                                                     << agent.log();
    auto all = told(from);
    all.erase(last);
    int missed = 0, twice = 0, wrong = 0;
    for (const auto& [number, what] : expected) {
      const auto found = all.extract("prod/" + name(number));
      missed += found.empty() ? 1 : 0;
      twice += !found.empty() && found.mapped().size() > 1 ? 1 : 0;
      if (!found.empty() && found.mapped().front() != what)
        ++wrong, ADD_FAILURE() << name(number) << ": " << found.mapped().front();
    }
    std::cout << of << ": " << expected.size() << " expected, " << missed << " missed, " << twice << " twice, " << wrong
              << " as something else, " << all.size() << " others\n";
    EXPECT_EQ(missed, 0);
    EXPECT_EQ(twice, 0);
    EXPECT_TRUE(all.empty()) << all.begin()->first << " " << all.begin()->second.front();
  }
};

TEST_F(K8sMany, SecretsThroughARestartOfTheApiServerNoneMissedNoneTwice) {
  Agent a = agent();
  const auto began = Clock::now();
  ASSERT_NO_FATAL_FAILURE(begin(a));
  const double listed = std::chrono::duration<double>(Clock::now() - began).count();
  const json worker = a.backend("cluster")->at("worker");
  const std::string pid = worker.at("pid").is_string() ? worker.at("pid").get<std::string>() : worker.at("pid").dump();

  Child informer({"sh", "-c", "exec \"$0\" \"$@\" < /dev/zero", KubeServer::tools() + "/informer", kube.server(),
                  kube.ca_file(), kube.file("token"), "prod"},
                 {dir.file("informer.log"), {}, {}});
  ASSERT_TRUE(eventually([&] { return read_file(dir.file("informer.log")).find("synced 10000") != std::string::npos; },
                         seconds(120)))
      << read_file(dir.file("informer.log"));
  std::cout << "10,000 Secrets of " << value.size() << " bytes: baseline in " << listed << " s\n";
  // What a list freed is given back a moment later; the informer's own moments of collection move its figure, too.
  Memory ours, theirs, whole;
  const bool small = eventually([&] {
    ours = memory(pid), theirs = memory(std::to_string(informer.pid())), whole = memory(std::to_string(a.pid()));
    return ours.pss > 0 && (whole.pss + ours.pss) * 3 < theirs.pss;
  });
  informer.kill();
  print("worker", ours);
  print("agent, with store and sink", whole);
  print("client-go informer", theirs);
  std::cout << "  worker / informer: " << ours.pss / theirs.pss
            << "; agent + worker / informer: " << (whole.pss + ours.pss) / theirs.pss << ", anonymous "
            << (whole.anonymous + ours.anonymous) / theirs.anonymous << "\n";
  EXPECT_TRUE(small) << "more than a third of an informer";

  const std::size_t from = stream_events(nats).size();
  Expectation expected;
  rotate_all(0, 100, "one-");
  kube.kill();
  kube.start();
  rotate_all(100, 200, "two-");
  expect(expected, 0, 200, "changed auto-applied");
  expect_told(a, from, expected, "restart");
}

TEST_F(K8sMany, SecretsWhosePositionEtcdForgotWhileTheWatchWasCutOffNoneMissedNoneTwice) {
  Relay relay(kube.port());
  Agent a = agent(relay.port());
  ASSERT_NO_FATAL_FAILURE(begin(a));
  const std::size_t from = stream_events(nats).size();
  Expectation expected;
  rotate_all(0, 50, "before-");
  expect(expected, 0, 50, "changed auto-applied");
  ASSERT_TRUE(eventually([&] { return told(from).size() >= 50; }, seconds(60))) << a.log();

  relay.close();
  rotate_all(50, 150, "unseen-");
  for (int i = 150; i < 200; ++i) kube.remove(secrets() + "/" + name(i));
  for (int i = 200; i < 220; ++i) {  // gone and back before anybody looks, with the same values
    kube.remove(secrets() + "/" + name(i));
    create(i);
  }
  for (int i = kMany; i < kMany + 50; ++i) create(i);
  expect(expected, 50, 150, "changed auto-applied");
  expect(expected, 150, 200, "deleted pending");
  expect(expected, 200, 220, "recreated pending");
  expect(expected, kMany, kMany + 50, "created pending");
  kube.compact();
  kube.kill();  // its cache of events still reached back
  kube.start();
  const auto confirmed = [&] {
    return kube.counted("apiserver_request_total", {"code=\"404\"", "resource=\"secrets\"", "verb=\"GET\""});
  };
  ASSERT_EQ(confirmed(), 0);

  auto meanwhile = std::async(std::launch::async, [&] { rotate_all(300, 400, "while-listing-"); });
  relay.open();
  expect(expected, 300, 400, "changed auto-applied");
  meanwhile.get();
  expect_told(a, from, expected, "compaction");
  EXPECT_NE(a.log().find("no longer knows where this watch was"), std::string::npos) << "the 410 was never met:\n"
                                                                                     << a.log();
  EXPECT_EQ(confirmed(), 50) << "each deletion was confirmed by the API server, once";
}

}  // namespace
}  // namespace driftd::test
