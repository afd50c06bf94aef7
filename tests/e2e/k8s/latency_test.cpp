// SPDX-License-Identifier: Apache-2.0
// Measures the time from the request that changes a Secret until JetStream acknowledges the event. In turns with it,
// the same is measured without an agent: such a request, fdatasync, publish.
#include <poll.h>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "line.hpp"
#include "support/floor.hpp"
#include "support/patience.hpp"
#include "support/stream_events.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kChanges = 100;
constexpr int kRounds = 5;
constexpr double kMaxMs = 100;  // of the p99
/// If the same without an agent has a p99 above a third of kMaxMs in every round, the machine is slow. The limit is
/// then this many times the p99 without an agent.
constexpr double kMaxOfFloor = 3;

struct Spread {
  double p50 = 0, p99 = 0, max = 0;
};

Spread spread(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  const auto at = [&](std::size_t percent) { return ms[(ms.size() * percent + 99) / 100 - 1]; };
  return {at(50), at(99), ms.back()};
}

void print(const std::string& what, const Spread& s) {
  std::cout << "  " << what << ": p50 " << s.p50 << " ms, p99 " << s.p99 << " ms, maximum " << s.max << " ms\n";
}

/// Receives the acks that JetStream sends to the agent, which is the only publisher of the stream DRIFT. They are the
/// messages that settle the agent's outbox.
class Acks {
 public:
  explicit Acks(const std::string& url) : inboxes_(url, "_INBOX.>") {}
  struct Ack {
    std::uint64_t seq = 0;
    Clock::time_point at;
  };
  std::vector<Ack> all() const {
    std::vector<Ack> out;
    for (const auto& message : inboxes_.received()) {
      const json body = json::parse(message.body, nullptr, false);
      if (body.is_object() && body.value("stream", "") == "DRIFT" && body.contains("seq") && !body.contains("type")) {
        out.push_back({body.at("seq"), message.at});
      }
    }
    return out;
  }

 private:
  NatsSubscriber inboxes_;
};

struct K8sLatency : K8sLine {
  Floor floor{dir.path().string(), nats.url()};

  /// Milliseconds of each change: without an agent, and from the request to the ack. The last three are the parts of
  /// the latter by the times in the event: until it was observed, until it was recorded, until it was acknowledged.
  struct Round {
    std::vector<double> bare, acked, observed, recorded, delivered;
  };
  struct Change {
    Clock::time_point began;
    std::chrono::nanoseconds wall{};
    Acks::Ack ack;
  };
  Change change(const Acks& acks, std::size_t count, const std::string& value) const {
    Change out{Clock::now(), std::chrono::system_clock::now().time_since_epoch(), {}};
    rotate("db", value);
    std::vector<Acks::Ack> all;
    while (all.size() <= count && Clock::now() - out.began < seconds(20 * kPatience)) {
      ::poll(nullptr, 0, 1);
      all = acks.all();
    }
    EXPECT_EQ(all.size(), count + 1) << "there must be exactly one ack for each change";
    if (all.size() == count + 1) out.ack = all.back();
    return out;
  }
  Round round(int number) {
    const Acks acks(nats.url());
    Round out;
    std::vector<Change> changes;
    while (changes.size() < kChanges && !HasFailure()) {
      const std::string value = "canary-" + std::to_string(number) + "-" + std::to_string(changes.size());
      changes.push_back(change(acks, changes.size(), value));
      const auto began = Clock::now();
      kube.patch("/api/v1/namespaces/beside/secrets/db", {{"stringData", {{"password", value}}}});
      floor.deliver(std::string(400, 'x'));
      out.bare.push_back(std::chrono::duration<double, std::milli>(Clock::now() - began).count());
    }
    const auto stored = stream_contents(nats.url(), "DRIFT");
    for (const auto& each : changes) {
      if (each.ack.seq == 0 || each.ack.seq > stored.size()) return {};
      const auto event = event_of(stored[each.ack.seq - 1]);
      EXPECT_EQ(event.what() + " " + event.resource_id(), "credentials.rotated prod/db")
          << "the ack is of another event";
      const auto since = [&](std::int64_t ns) { return static_cast<double>(ns - each.wall.count()) / 1e6; };
      out.acked.push_back(std::chrono::duration<double, std::milli>(each.ack.at - each.began).count());
      out.observed.push_back(since(event.observed_ns()));
      out.recorded.push_back(since(event.recorded_ns()) - out.observed.back());
      out.delivered.push_back(out.acked.back() - since(event.recorded_ns()));
    }
    return out;
  }
};

TEST_F(K8sLatency, ASecretsRotationIsAcknowledgedByJetStreamWithinATenthOfASecond) {
  kube.create_secret("prod", "db", {{"password", "canary"}});
  kube.create_namespace("beside");
  kube.create_secret("beside", "db", {{"password", "canary"}});
  Agent a = agent();
  ASSERT_NO_FATAL_FAILURE(begin(a));
  rotate("db", "first");  // when its event arrives, the watch has begun
  ASSERT_TRUE(
      arrives(nats, {"cluster", "secret/prod/db", "credentials.rotated", "auto-applied", "changed", "data.password"}))
      << a.log();
  bool kept = false, was_fast = false, kept_ratio = false;
  for (int i = 0; i < kRounds && !kept; ++i) {
    const Round done = round(i);
    ASSERT_EQ(done.acked.size(), kChanges) << a.log();
    double load = 0;
    ::getloadavg(&load, 1);
    const Spread whole = spread(done.acked), bare = spread(done.bare);
    const bool slow = bare.p99 > kMaxMs / kMaxOfFloor;
    kept = whole.p99 < kMaxMs * kPatience;
    was_fast = was_fast || !slow;
    kept_ratio = kept_ratio || whole.p99 < kMaxOfFloor * bare.p99 * kPatience;
    std::cout << "round " << i + 1 << " of at most " << kRounds << ", load average " << load << "\n";
    print("without an agent", bare);
    print("request to the API server -> PubAck", whole);
    print("  … -> seen by the watch", spread(done.observed));
    print("  … -> committed", spread(done.recorded));
    print("  … -> PubAck", spread(done.delivered));
  }
  if (!kept && !was_fast)
    std::cout << "LOUD: the machine was slow without an agent in every round, so the ratio was tested instead\n";
  EXPECT_TRUE(kept || (!was_fast && kept_ratio)) << "no round kept the limit";
  const auto settled = [&] {
    const auto totals = a.ask({"queue"}).value("books", json::array());
    return totals.size() == 1 && totals[0].at("pending") == 0 && totals[0].at("acked") == totals[0].at("emitted");
  };
  EXPECT_TRUE(eventually(settled)) << a.ask({"queue"}).dump();
}

}  // namespace
}  // namespace driftd::test
