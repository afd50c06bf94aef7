// SPDX-License-Identifier: Apache-2.0
// examples/change-log/collector.yaml in a real OpenTelemetry Collector, over the lines of a real sidecar.
#include <gmock/gmock.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "grpc/change_log_client.hpp"
#include "support/agent.hpp"
#include "support/operations.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

const std::string& collector() {
  static const std::string binary = [] {
    Output built = run({DRIFTD_SOURCE_DIR "/tests/servers/collector/build.sh"}, {}, std::chrono::minutes(50));
    if (built.code != 0) throw std::runtime_error("tests/servers/collector/build.sh: " + built.err);
    while (!built.out.empty() && built.out.back() == '\n') built.out.pop_back();
    return built.out + "/collector";
  }();
  return binary;
}

class CollectedChangeLog : public testing::Test {
 protected:
  /// Sends operations to a sidecar that writes to `file`, or to its stdout, and returns what it wrote.
  std::string write_lines(const std::vector<core::Enforcement>& operations, const std::string& output,
                          const std::string& file) {
    rpc::ChangeLogTarget target;
    target.socket = dir_.file("s.sock");
    Child sidecar({"sh", "-c", R"(exec "$0" changelog-sidecar --listen "unix://$1" --output "$2" >"$3" 2>"$3.err")",
                   Agent::binary(), target.socket, output, file == output ? "/dev/null" : file},
                  {});
    EXPECT_TRUE(eventually([&] { return std::filesystem::is_socket(target.socket); }));
    asio::io_context core;
    const auto client = rpc::open_change_log(target, "cluster", "west", core.get_executor());
    std::vector<core::ChangeEntry> entries;
    for (const auto& operation : operations) {
      core::ChangeEntry entry;
      entry.sequence = static_cast<std::int64_t>(entries.size()) + 1;
      entry.operation = operation;
      entries.push_back(std::move(entry));
    }
    auto answer = asio::co_spawn(core, client->write(std::move(entries)), asio::use_future);
    core.run();
    EXPECT_EQ(answer.get().verdict, core::ChangeLogReceiver::Answer::Verdict::answered);
    sidecar.signal(SIGTERM);
    EXPECT_EQ(sidecar.wait(seconds(15)), 0);
    return read_file(file);
  }
  /// Runs the example, with its exporter replaced by a file, until it exported `count` records; returns them.
  std::vector<json> collect(const std::string& config, const std::string& logs, std::size_t count) {
    std::filesystem::create_directories(dir_.path() / "checkpoints");
    const std::string exported = dir_.file("exported.json");
    dir_.write("exporter.yaml", "exporters:\n  file: { path: \"" + exported +
                                    "\", flush_interval: 50ms }\nservice:\n  pipelines:\n    logs/driftd: { exporters: "
                                    "[file] }\n");
    Child child({collector(), "--config", config, "--config", dir_.file("exporter.yaml")},
                {dir_.file("collector.log"),
                 {{"CHANGE_LOGS", logs}, {"CHECKPOINTS", dir_.file("checkpoints")}, {"OTLP_ENDPOINT", "127.0.0.1:1"}},
                 {}});
    std::vector<json> out;
    EXPECT_TRUE(eventually(
        [&] {
          out = records(exported);
          return out.size() >= count;
        },
        seconds(30)))
        << read_file(dir_.file("collector.log"));
    child.signal(SIGTERM);
    EXPECT_EQ(child.wait(seconds(15)), 0) << read_file(dir_.file("collector.log"));
    return out;
  }
  static std::vector<json> records(const std::string& file) {
    std::vector<json> out;
    if (!std::filesystem::exists(file)) return out;
    std::istringstream text(read_file(file));
    for (std::string line; std::getline(text, line);) {
      const json batch = json::parse(line, nullptr, false);
      if (batch.is_discarded()) continue;  // it is being written
      for (const auto& resource : batch.at("resourceLogs")) {
        for (const auto& scope : resource.at("scopeLogs")) {
          for (const auto& record : scope.at("logRecords")) out.push_back(record);
        }
      }
    }
    return out;
  }
  static json attribute(const json& record, const std::string& name) {
    for (const auto& one : record.at("attributes")) {
      if (one.at("key") == name) return one.at("value");
    }
    return nullptr;
  }
  static json text(const std::string& value) { return {{"stringValue", value}}; }
  static std::vector<core::Enforcement> operations() {
    core::Enforcement failed = ended_operation(2);
    failed.state = core::EnforcementState::rolled_back;
    failed.text = "half of it was set";
    return {ended_operation(1), failed};
  }
  /// What the example makes of the two operations.
  static void check(const std::vector<json>& got) {
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].at("timeUnixNano"), "1760000000001000000") << "the time of the operation, not of the reading";
    EXPECT_EQ(got[0].at("severityText"), "success");
    EXPECT_EQ(got[0].at("severityNumber"), 9);
    EXPECT_EQ(attribute(got[0], "operation_id"), text("op-0000000000000001"));
    EXPECT_EQ(attribute(got[0], "log.record.uid"), text("op-0000000000000001"));
    EXPECT_EQ(attribute(got[0], "provider"), text("redis:1.0.0"));
    EXPECT_EQ(attribute(got[0], "cluster"), text("west"));
    EXPECT_NE(attribute(got[0], "desired").dump().find("604800000"), std::string::npos);
    EXPECT_EQ(got[1].at("severityText"), "error");
    EXPECT_EQ(got[1].at("severityNumber"), 17);
    EXPECT_NE(attribute(got[1], "result").dump().find("rolled_back"), std::string::npos);
  }

  TempDir dir_;
  const std::string example_ = DRIFTD_SOURCE_DIR "/examples/change-log/collector.yaml";
};

/// As the runtime writes what the sidecar's container prints, with what the sidecar says about itself.
TEST_F(CollectedChangeLog, TheExampleReadsThePodLogOfTheSidecar) {
  const std::string folder = dir_.file("pods/driftd_driftd-cluster-7c9f_0b7a/change-log-sidecar");
  std::filesystem::create_directories(folder);
  std::istringstream lines(write_lines(operations(), "-", dir_.file("stdout")));
  std::ofstream log(folder + "/0.log");
  for (std::string line; std::getline(lines, line);) {
    log << "2026-11-27T02:00:01.4Z stderr F 2026-11-27T02:00:01.400Z info  sidecar: an entry comes\n"
        << "2026-11-27T02:00:01.5Z stdout F " << line << "\n";
  }
  log.close();
  const auto got = collect(example_, dir_.file("pods/driftd_driftd-cluster-*/change-log-sidecar/*.log"), 2);
  ASSERT_NO_FATAL_FAILURE(check(got));
}

/// The same without the operator that its comment names.
TEST_F(CollectedChangeLog, TheExampleReadsAFileOfTheSidecarWithoutTheOperatorOfTheRuntime) {
  const std::string file = dir_.file("changes.jsonl");
  (void)write_lines(operations(), file, file);
  std::string config = read_file(example_);
  const std::string operation = "      - type: container\n";
  const auto at = config.find(operation);
  ASSERT_NE(at, std::string::npos);
  config.erase(at, operation.size());
  const auto got = collect(dir_.write("collector.yaml", config), file, 2);
  ASSERT_NO_FATAL_FAILURE(check(got));
}

}  // namespace
}  // namespace driftd::test
