// SPDX-License-Identifier: Apache-2.0
// Events that wait in the store when the brokers come back, and what a bare producer does with the same bytes.
#include <librdkafka/rdkafka.h>
#include <sys/resource.h>
#include <iostream>

#include "support/agent_run.hpp"
#include "support/patience.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

constexpr int kEvents = 20'000;
constexpr std::chrono::seconds kBound{20};  // eventually() waits longer under a sanitizer

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/// Sends the records with an idempotent producer that waits for nothing in between. Returns events per second, durable.
double bare_rate(const std::string& address, const std::string& topic, const std::vector<KafkaReceived>& records) {
  char error[512];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  const std::pair<const char*, std::string> options[] = {
      {"bootstrap.servers", address}, {"enable.idempotence", "true"}, {"linger.ms", "0"}};
  for (const auto& [name, value] : options) rd_kafka_conf_set(conf, name, value.c_str(), error, sizeof error);
  static int acked = 0;
  acked = 0;
  rd_kafka_conf_set_dr_msg_cb(conf, [](rd_kafka_t*, const rd_kafka_message_t* message, void*) {
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) ++acked;
  });
  rd_kafka_t* producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& record : records) {
    rd_kafka_headers_t* headers = rd_kafka_headers_new(record.headers.size());
    for (const auto& [name, value] : record.headers)
      rd_kafka_header_add(headers, name.c_str(), -1, value.data(), static_cast<ssize_t>(value.size()));
    const auto result = rd_kafka_producev(
        producer, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(record.partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(record.key.data(), record.key.size()),
        RD_KAFKA_V_VALUE(const_cast<char*>(record.value.data()), record.value.size()), RD_KAFKA_V_HEADERS(headers),
        RD_KAFKA_V_END);
    EXPECT_EQ(result, RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_poll(producer, 0);
  }
  rd_kafka_flush(producer, 60'000);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(acked, static_cast<int>(records.size()));
  rd_kafka_destroy(producer);
  return static_cast<double>(records.size()) / took.count();
}

class KafkaSinkDrain : public SharedBroker {
 protected:
  /// Expects that the store's totals count every event as acknowledged within kBound, and prints how fast that was,
  /// beside a bare producer of the same bytes into a topic of its own.
  void expect_drained(AgentRun& agent) {
    const auto begin = std::chrono::steady_clock::now();
    const double cpu = cpu_seconds();
    const bool drained = eventually([&] { return agent.totals().acked == kEvents; }, kBound);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double used = cpu_seconds() - cpu;
    ASSERT_TRUE(drained) << agent.totals().acked << " of " << kEvents << " events were acknowledged; "
                         << agent.view().state << " " << agent.view().last_error;
    EXPECT_EQ(agent.view().missed_wakeups, 0U);
    const auto got = records();
    EXPECT_EQ(got.size(), static_cast<std::size_t>(kEvents));
    EXPECT_EQ(key_out_of_order(got), "");
    const std::string other = topic("-bare");
    server().topics({"--create", "--topic", other});
    const double bare = bare_rate(server().address(), other, got), rate = kEvents / took.count();
    std::cout << kEvents << " waiting events acknowledged after " << took.count() << " s: " << rate
              << " per second, a bare producer " << bare << " (" << rate / bare << "); " << used / kEvents * 1e6
              << " us of this process's time for each, the test's polling included\n";
  }
  TempDir dir_;
};

TEST_F(KafkaSinkDrain, TwentyThousandWaitingEventsAreAcknowledgedWithin20SecondsOfTheBrokersReturn) {
  server().stop();
  AgentRun agent(dir_, kafka_sink(settings()));
  agent.commit(kEvents);
  ASSERT_TRUE(eventually([&] { return agent.view().state.rfind("circuit open", 0) == 0; })) << agent.view().state;
  server().start();
  expect_drained(agent);
}

TEST_F(KafkaSinkDrain, TheSameAfterARestartOfTheAgent) {
  server().stop();
  {
    AgentRun before(dir_, kafka_sink(settings()));
    before.commit(kEvents);
  }
  server().start();
  AgentRun agent(dir_, kafka_sink(settings()));
  expect_drained(agent);
}

TEST_F(KafkaSinkDrain, TheSameInTransactions) {
  auto with = settings();
  with.transactional_id = topic();
  server().stop();
  {
    AgentRun before(dir_, kafka_sink(with));
    before.commit(kEvents);
  }
  server().start();
  AgentRun agent(dir_, kafka_sink(with));
  expect_drained(agent);
}

}  // namespace
}  // namespace driftd::test
