// SPDX-License-Identifier: Apache-2.0
// driftd-check of the sink plugins that we ship as examples, against the receiver that it starts.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/patience.hpp"
#include "support/process.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;

class OwnSinks : public ::testing::TestWithParam<const char*> {};

TEST_P(OwnSinks, SyslogKeepsEveryRule) {
  const TempDir folder;
  const std::string settings =
      folder.write("settings.yaml", "address: 127.0.0.1:${tcp}\ntransport: tcp\nhostname: checked\n");
  const Output done = run({DRIFTD_BINARY_DIR "/bin/driftd-check", DRIFTD_SYSLOG_SINK, "--sink", "--json", "--settings",
                           settings, "--only", GetParam()},
                          {}, std::chrono::minutes(4) * kPatience);
  const json report = json::parse(done.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << done.out << done.err;
  for (const auto& one : report["checks"]) {
    const bool must = one["level"] == "must";
    EXPECT_TRUE(one["result"] == "passed" || one["result"] == "not_applicable" || !must) << one.dump(2);
  }
  EXPECT_EQ(done.code, 0) << done.err;
}

INSTANTIATE_TEST_SUITE_P(Groups, OwnSinks,
                         ::testing::Values("binary", "negotiation", "memory", "verdicts", "content", "order", "threads",
                                           "deadline", "probe", "schema", "secrets", "chaos"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace driftd::test
