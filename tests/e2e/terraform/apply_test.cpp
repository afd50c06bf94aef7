// SPDX-License-Identifier: Apache-2.0
// OpenTofu changes a state, the agent reads it, JetStream has the events: those of an apply, of an edit by hand and of
// a destroy.
#include <gmock/gmock.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/agent.hpp"
#include "support/large_states.hpp"
#include "support/nats.hpp"
#include "support/patience.hpp"
#include "support/tofu.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

/// Returns the value of a header. Empty if the message does not have it.
std::string header(const NatsReceived& message, const std::string& name) {
  for (const auto& [key, value] : message.headers) {
    if (key == name) return value;
  }
  return {};
}

class TerraformLine : public testing::Test {
 protected:
  /// `call` is the budget of one call.
  Agent agent(const std::string& settings, std::map<std::string, std::string> env = {},
              const std::string& call = "60s") const {
    return Agent(dir_,
                 "defaults:\n  interval: 1s\n  budgets: { call: " + call +
                     " }\nbackends:\n  - name: platform\n    provider: terraform\n    settings: " + settings +
                     "\nsinks:\n  bus: { type: nats, servers: [\"" + nats_.url() + "\"], views: false }\n",
                 std::move(env));
  }
  static void start(Agent& a) {
    a.start();
    ASSERT_TRUE(eventually([&] { return a.established({"platform"}); }, seconds(60))) << a.log();
  }
  /// Returns the NATS subjects of the events about this resource, in the stream's order.
  std::vector<std::string> subjects(const std::string& resource) const {
    std::vector<std::string> out;
    for (const auto& message : stream_contents(nats_.url(), "DRIFT")) {
      if (header(message, "ce-subject") == "platform/" + resource) out.push_back(message.subject);
    }
    return out;
  }
  bool arrives(const std::string& resource, std::size_t count) const {
    return eventually([&] { return subjects(resource).size() >= count; }, seconds(30));
  }
  /// Returns the newest event about this resource as `driftd events` prints it in JSON.
  static std::string newest(const Agent& a, const std::string& resource) {
    json out = {{"seq", -1}};
    std::istringstream lines(a.cli({"events", "-o", "json"}).out);
    for (std::string line; std::getline(lines, line);) {
      const json row = json::parse(line, nullptr, false);
      if (row.is_object() && row.value("resource", "") == resource && row["seq"] > out["seq"]) out = row;
    }
    return out.dump();
  }
  TempDir dir_;
  NatsServer nats_;
};

TEST_F(TerraformLine, AnApplyIsAcceptedAHandIsAskedAboutAndADestroyIsConfirmed) {
  Tofu tofu;
  const auto resources = [](int value, int count) {
    return "resource \"terraform_data\" \"a\" { input = " + std::to_string(value) +
           " }\nresource \"terraform_data\" \"many\" { count = " + std::to_string(count) + " }\n";
  };
  tofu.configure(resources(1, 3));
  tofu.apply();
  Agent a = agent("{ path: " + tofu.state_file() + " }");
  ASSERT_NO_FATAL_FAILURE(start(a));

  tofu.configure(resources(2, 3));
  tofu.apply();
  ASSERT_TRUE(arrives("instance/terraform_data.a", 1)) << a.log();
  EXPECT_EQ(subjects("instance/terraform_data.a").back(), "backend.platform.config.updated");
  EXPECT_TRUE(a.rows({"drifts"}).empty())
      << "a higher serial of the same lineage is an apply, which the policy accepts";
  const std::string applied = newest(a, "instance/terraform_data.a");
  EXPECT_THAT(applied, testing::AllOf(HasSubstr("auto-applied"), HasSubstr("instance/terraform_data.a:input"),
                                      HasSubstr("lineage")));

  std::string edited = read_file(tofu.state_file());
  const auto at = edited.find("\"value\":2");
  ASSERT_NE(at, std::string::npos);
  std::ofstream(tofu.state_file()) << edited.replace(at, 9, "\"value\":9");
  ASSERT_TRUE(arrives("instance/terraform_data.a", 2)) << a.log();
  ASSERT_EQ(a.rows({"drifts"}).size(), 1u);
  EXPECT_EQ(a.rows({"drifts"})[0]["status"], "pending");
  EXPECT_THAT(newest(a, "instance/terraform_data.a"),
              testing::AllOf(HasSubstr("tampered"), HasSubstr("instance/terraform_data.a:input")));

  tofu.configure(resources(2, 2));
  tofu.apply();
  ASSERT_TRUE(arrives("instance/terraform_data.many[2]", 1)) << a.log();
  EXPECT_THAT(newest(a, "instance/terraform_data.many[2]"), HasSubstr("deleted"));
  EXPECT_EQ(a.stop(), 0);
}

TEST_F(TerraformLine, AStateOverHttpIsReadThroughTheJailAndItsPasswordIsNowhere) {
  StateServer server;
  server.control({{"user", "driftd"}, {"password", "password-canary"}});
  const std::string address = server.url("/state/platform");
  const std::string lines =
      "backend \"http\" {\n address = \"" + address + "\"\n username = \"driftd\"\n password = \"password-canary\"\n}";
  const auto secret = [](const std::string& value) {
    return "variable \"pw\" {\n sensitive = true\n default = \"" + value +
           "\"\n}\nresource \"terraform_data\" \"s\" { input = var.pw }\n";
  };
  Tofu tofu;
  tofu.configure(secret("state-canary-1"), lines);
  tofu.apply();
  Agent a = agent("{ backend: { type: http, address: \"" + address +
                      "\", username: driftd, password: \"${env:STATE_PASSWORD}\" } }",
                  {{"STATE_PASSWORD", "password-canary"}});
  ASSERT_NO_FATAL_FAILURE(start(a));
  tofu.configure(secret("state-canary-2"), lines);
  tofu.apply();
  ASSERT_TRUE(arrives("instance/terraform_data.s", 1)) << a.log();
  server.control({{"status", 403}});
  ASSERT_TRUE(eventually([&] { return a.backend("platform")->dump().find("GET " + address) != std::string::npos; }))
      << a.backend("platform")->dump();
  server.control(json::object());
  std::string everything = a.log();
  for (const auto& command : {"drifts", "resources", "events", "backends", "status"})
    everything += a.cli({command, "-o", "json"}).out;
  for (const auto& message : stream_contents(nats_.url(), "DRIFT")) everything += message.body;
  for (const auto& row : a.rows({"drifts", "--all"})) EXPECT_NE(row["operation"], "deleted") << row.dump();
  EXPECT_EQ(a.stop(), 0);
  everything += read_files(a.data_dir());
  EXPECT_THAT(everything, HasSubstr("SQLite format 3"));
  for (const auto& canary : {"password-canary", "state-canary-1", "state-canary-2"})
    EXPECT_THAT(everything, Not(HasSubstr(canary)));
}

TEST_F(TerraformLine, TheRunOfHcpTerraformIsInTheEvent) {
  StateServer server;  // a local server with the documented API of HCP Terraform
  const auto publish = [&](const std::string& version, int serial, int value) {
    const std::string state =
        R"({"version":4,"terraform_version":"1.9.0","serial":)" + std::to_string(serial) +
        R"(,"lineage":"abc","outputs":{},"resources":[{"mode":"managed","type":"kafka_topic","name":"a",)" +
        R"("provider":"p","instances":[{"attributes":{"partitions":)" + std::to_string(value) + "}}]}]}";
    server.control({{"token", "token-canary"},
                    {"state_version", version},
                    {"serial", serial},
                    {"state", state},
                    {"run", {{"id", "run-" + version}, {"status", "applied"}}}});
  };
  publish("sv-1", 1, 3);
  Agent a = agent("{ backend: { type: cloud, hostname: \"" + server.url("") +
                      "\", organization: acme, workspaces: { name: platform }, " + "token: \"${env:TFC_TOKEN}\" } }",
                  {{"TFC_TOKEN", "token-canary"}});
  ASSERT_NO_FATAL_FAILURE(start(a));
  publish("sv-2", 2, 6);
  ASSERT_TRUE(arrives("instance/kafka_topic.a", 1)) << a.log();
  EXPECT_THAT(newest(a, "instance/kafka_topic.a"), testing::AllOf(HasSubstr("run-sv-2"), HasSubstr("auto-applied"),
                                                                  HasSubstr("instance/kafka_topic.a:partitions")));
  EXPECT_THAT(a.log(), Not(HasSubstr("token-canary")));
  EXPECT_EQ(a.stop(), 0);
}

/// Returns the peak resident memory of a process in MiB, or -1 if the process has ended.
long peak_mib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stol(line.substr(6)) / 1024;
  }
  return -1;
}

/// Returns the user and system time that a process has used so far, in seconds.
double cpu_seconds(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string word;
  for (int i = 0; i < 11; ++i) fields >> word;
  long user = 0, system = 0;
  fields >> user >> system;
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

TEST_F(TerraformLine, AStateOf120MiBIsReadInAWorkerThatStaysSmall) {
  if (kSanitized)
    GTEST_SKIP() << "LOUD: a sanitizer's shadow counts as the worker's memory, so its bound is not tested";
  const TempDir infra;  // not in the folder of the configuration, where a worker is restarted when a file is replaced
  const std::string path = infra.file("terraform.tfstate");
  write_large_state(path, 120u << 20, 1, "first");
  Agent a = agent("{ path: " + path + " }", {}, "240s");
  a.start();
  ASSERT_TRUE(eventually([&] { return a.established({"platform"}); }, seconds(240))) << a.log();
  const pid_t worker = a.backend("platform")->at("worker").at("pid").get<pid_t>();
  write_large_state(path, 120u << 20, 1, "edited");
  const double before = cpu_seconds(worker);
  ASSERT_TRUE(eventually([&] { return !subjects("instance/aws_instance.fleet[0]").empty(); }, seconds(180))) << a.log();
  const long peak = peak_mib(worker);
  std::printf("a state of %ju MiB: the worker's memory peaks at %ld MiB; %.1f s of CPU for the first refresh\n",
              static_cast<std::uintmax_t>(std::filesystem::file_size(path) >> 20), peak, before);
  EXPECT_GT(peak, 0);
  EXPECT_LT(peak, 128);
  EXPECT_EQ(a.stop(), 0);
}

}  // namespace
}  // namespace driftd::test
