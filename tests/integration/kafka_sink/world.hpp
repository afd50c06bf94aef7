// SPDX-License-Identifier: Apache-2.0
// Helpers of this folder's tests: the Kafka sink behind a real relay, against real brokers.
#pragma once

#include <gmock/gmock.h>
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sinks/kafka/kafka_sink.hpp"
#include "support/kafka.hpp"
#include "support/kafka_records.hpp"
#include "support/relay_runner.hpp"
#include "support/sink_events.hpp"

namespace driftd::test {

/// The regular check comes once a minute, as in production. So what a test finds sooner was not found by that check.
inline constexpr std::chrono::milliseconds kEachMinute{60'000};

inline RelayRunner::MakeSink kafka_sink(sinks::KafkaSettings settings) {
  return [settings](auto core, auto io, const Clock&) { return sinks::open_kafka("log", settings, core, io); };
}

inline sinks::KafkaSettings at(const std::string& address, const std::string& topic) {
  sinks::KafkaSettings settings;
  settings.bootstrap_servers = {address};
  settings.topic = topic;
  settings.ack_wait = std::chrono::milliseconds(10'000);
  return settings;
}

inline bool delivered(RelayRunner& runner, std::int64_t count, std::chrono::seconds within = std::chrono::seconds(40)) {
  return eventually([&] { return runner.view().delivered >= count; }, within);
}

/// Waits until the sink's line in `driftd status` or its last error contains `text`.
inline testing::AssertionResult reports(RelayRunner& runner, const std::string& text) {
  std::string seen;
  const auto found = [&] {
    const auto view = runner.view();
    seen = view.state + "\n" + view.last_error;
    return seen.find(text) != std::string::npos;
  };
  if (eventually(found, std::chrono::seconds(40))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << text << "' is not in:\n" << seen;
}

/// Adds the events `from` to `to`, each about a topic of its own.
inline void add(RelayRunner& runner, std::int64_t from, std::int64_t to) {
  for (std::int64_t n = from; n <= to; ++n) runner.add(sample_stored(n));
}

/// Event number `n`, about topic `t<topic>`. Events of one topic are sent one after the other.
inline core::StoredEvent event_of_topic(std::int64_t n, std::int64_t topic) {
  core::StoredEvent event = sample_stored(n);
  event.key = "0123456789abcdef/topic/t" + std::to_string(topic);
  return event;
}

/// The numbers of events 1 to `count` that the topic lacks.
inline std::vector<std::int64_t> missing(const std::string& address, const std::string& topic, std::int64_t count) {
  std::set<std::string> there;
  for (const auto& record : topic_contents(address, topic)) there.insert(record.header("ce_id"));
  std::vector<std::int64_t> out;
  for (std::int64_t n = 1; n <= count; ++n) {
    if (there.count(sample_stored(n).stamp.id) == 0) out.push_back(n);
  }
  return out;
}

/// Waits until nothing is missing, for well below the minute after which the regular check comes.
inline testing::AssertionResult all_there(const std::string& address, const std::string& topic, RelayRunner& runner,
                                          std::int64_t count) {
  std::vector<std::int64_t> lost;
  const auto nothing_lost = [&] { return (lost = missing(address, topic, count)).empty(); };
  if (eventually(nothing_lost, std::chrono::seconds(40))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << lost.size() << " of " << count << " lost, the first is " << lost.front() << "; "
                                     << runner.view().state << "; " << runner.view().last_error;
}

/// One broker without a login that all tests of a suite share. Each test has topics of its own.
class SharedBroker : public testing::Test {
 protected:
  static void TearDownTestSuite() { shared().reset(); }
  SharedBroker() {
    if (!shared()) shared() = std::make_unique<KafkaServer>();
  }
  static KafkaServer& server() { return *shared(); }
  /// A topic of this test's own.
  static std::string topic(const std::string& more = "") {
    return std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + more;
  }
  sinks::KafkaSettings settings() const { return at(server().address(), topic()); }
  static std::vector<KafkaReceived> records() { return topic_contents(server().address(), topic()); }
  static std::string description() { return server().topics({"--describe", "--topic", topic()}); }

 private:
  static std::unique_ptr<KafkaServer>& shared() {
    static std::unique_ptr<KafkaServer> server;
    return server;
  }
};

}  // namespace driftd::test
