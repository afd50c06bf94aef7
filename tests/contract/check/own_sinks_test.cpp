// SPDX-License-Identifier: Apache-2.0
// driftd-check of the sink plugins that we ship as examples, against the receiver that it starts, over every network.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/patience.hpp"
#include "support/process.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

/// A sink, and how it reaches the check's receiver.
struct OwnSink {
  const char* name;
  const char* file;
  const char* settings;
  const char* answer;  ///< empty: it waits for none
};

const OwnSink kOwnSinks[] = {
    {"SyslogOverTcp", DRIFTD_SYSLOG_SINK, "address: 127.0.0.1:${tcp}\ntransport: tcp\nhostname: checked\n", ""},
    {"SyslogOverUdp", DRIFTD_SYSLOG_SINK, "address: 127.0.0.1:${udp}\ntransport: udp\nhostname: checked\n", ""},
    {"SyslogOverAUnixSocket", DRIFTD_SYSLOG_SINK, "socket: ${unixgram}\nhostname: checked\n", ""},
    {"LinesOverAUnixSocket", DRIFTD_LINES_SINK, "socket: ${unix}\n", R"(ok\n)"},
};

class OwnSinks : public ::testing::TestWithParam<std::tuple<OwnSink, const char*>> {};

TEST_P(OwnSinks, KeepEveryRuleAndEveryAdvice) {
  const auto& [sink, group] = GetParam();
  const TempDir folder;
  std::vector<std::string> command = {
      DRIFTD_BINARY_DIR "/bin/driftd-check",        sink.file, "--sink", "--json", "--settings",
      folder.write("settings.yaml", sink.settings), "--only",  group};
  if (*sink.answer != '\0') command.insert(command.end(), {"--answer", sink.answer});
  const Output done = run(command, {}, std::chrono::minutes(4) * kPatience);
  const json report = json::parse(done.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << done.out << done.err;
  for (const auto& one : report["checks"])
    EXPECT_TRUE(one["result"] == "passed" || one["result"] == "not_applicable") << one.dump(2);
  EXPECT_EQ(done.code, 0) << done.err;
}

INSTANTIATE_TEST_SUITE_P(
    Groups, OwnSinks,
    ::testing::Combine(::testing::ValuesIn(kOwnSinks),
                       ::testing::Values("binary", "negotiation", "memory", "verdicts", "content", "order", "threads",
                                         "deadline", "probe", "schema", "secrets", "chaos")),
    [](const auto& info) { return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param); });

TEST(MinimalSink, IsPrintedInItsPageAsItIsBuiltHere) {
  const std::string source = read_file(DRIFTD_SOURCE_DIR "/examples/sinks/minimal_c/lines.c");
  const std::string page = read_file(DRIFTD_SOURCE_DIR "/docs/write-a-sink.md");
  const std::string printed = source.substr(source.find('\n') + 1);  // without the line of the licence
  EXPECT_NE(page.find("```c\n" + printed + "```\n"), std::string::npos)
      << "docs/write-a-sink.md: expected examples/sinks/minimal_c/lines.c in its block ```c; copy the file there";
}

}  // namespace
}  // namespace driftd::test
