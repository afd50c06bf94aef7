// SPDX-License-Identifier: Apache-2.0
// Consumers that are not ours read the records: kafka-python and the SDK of the CloudEvents project.
#include <nlohmann/json.hpp>
#include <sstream>

#include "world.hpp"

namespace driftd::test {
namespace {

using KafkaSink = SharedBroker;

/// Returns what check_kafka.py prints about the first `count` records, by id.
std::map<std::string, nlohmann::json> read_by_python(const std::string& address, const std::string& topic, int count) {
  const std::string support = std::string(DRIFTD_SOURCE_DIR) + "/tests/support/";
  static const std::string python = [&support] {
    const Output out =
        run({"sh", support + "venv.sh", "kafka-python==2.2.15", "cloudevents==1.11.0"}, {}, std::chrono::seconds(200));
    if (out.code != 0) throw std::runtime_error(out.err);
    return out.out.substr(0, out.out.find('\n'));
  }();
  const Output out =
      run({python, support + "check_kafka.py", address, topic, std::to_string(count)}, {}, std::chrono::seconds(60));
  EXPECT_EQ(out.code, 0) << out.err;
  std::map<std::string, nlohmann::json> events;
  std::istringstream lines(out.out);
  for (std::string line; std::getline(lines, line);) {
    auto event = nlohmann::json::parse(line);
    const std::string id = event.at("id");
    events[id] = std::move(event);
  }
  return events;
}

void expect_event(const nlohmann::json& event, std::int64_t n) {
  const auto sent = sample_stored(n);
  EXPECT_EQ(event.value("specversion", ""), "1.0");
  EXPECT_EQ(event.value("source", ""), "//default/driftd/kafka");
  EXPECT_EQ(event.value("type", ""), "io.driftd.backend.config.updated.v1");
  EXPECT_EQ(event.value("subject", ""), "orders-kafka/topic/t" + std::to_string(n));
  EXPECT_EQ(event.value("partitionkey", ""), sent.key);
  EXPECT_EQ(event.value("driftseq", ""), std::to_string(n));
}

TEST_F(KafkaSink, ThePythonSdkReadsBinaryEventsWhereJavaWouldPutThem) {
  auto with = settings();
  with.partitions = 5;
  RelayRunner runner(kafka_sink(with), kEachMinute);
  add(runner, 1, 50);
  ASSERT_TRUE(delivered(runner, 50)) << runner.view().last_error;
  const auto events = read_by_python(server().address(), topic(), 50);
  ASSERT_EQ(events.size(), 50U);
  for (std::int64_t n = 1; n <= 50; ++n) {
    const auto& event = events.at(sample_stored(n).stamp.id);
    expect_event(event, n);
    EXPECT_EQ(event.value("datacontenttype", ""), "application/protobuf");
    EXPECT_EQ(event.at("data"), sample_stored(n).payload.size());
  }
}

TEST_F(KafkaSink, ThePythonSdkReadsStructuredEvents) {
  auto with = settings();
  with.json = true;
  RelayRunner runner(kafka_sink(with), kEachMinute);
  add(runner, 1, 20);
  ASSERT_TRUE(delivered(runner, 20)) << runner.view().last_error;
  const auto events = read_by_python(server().address(), topic(), 20);
  ASSERT_EQ(events.size(), 20U);
  for (std::int64_t n = 1; n <= 20; ++n) {
    const auto& event = events.at(sample_stored(n).stamp.id);
    expect_event(event, n);
    EXPECT_EQ(event.at("data").value("backend_name", ""), "orders-kafka");
  }
}

}  // namespace
}  // namespace driftd::test
