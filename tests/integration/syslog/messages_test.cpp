// SPDX-License-Identifier: Apache-2.0
// Messages of the syslog sink about events that are not well behaved, read by a parser that is not ours.
#include <gmock/gmock.h>
#include <deque>
#include <nlohmann/json.hpp>

#include "../../../examples/sinks/syslog/rfc5424.hpp"
#include "integration/syslog/rsyslog.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using syslog_sink::Form;
using syslog_sink::message;

/// Returns an event about the setting of a server. It borrows the body, which lives as long as the process.
sdk::sink::Event event_with(const std::string& body) {
  static std::deque<std::string> bodies;
  sdk::sink::Event out;
  out.id = "id-1";
  out.type = "io.driftd.backend.config.updated.v1";
  out.order_key = "u/k/r";
  out.sequence = 7;
  out.time_ns = 1'763'712'630'950'000'000;
  out.attributes = {{"backend", "cache"}, {"change", "config.updated"}, {"resource", "server/server"}};
  out.body = bodies.emplace_back(body);
  return out;
}

std::string body_with(const json& data) { return json{{"specversion", "1.0"}, {"data", data}}.dump(); }

json parsed(const std::string& text) {
  const TempDir dir;
  return parse_messages(dir.write("messages", text + "\n")).at(0);
}

TEST(SyslogMessage, KeepsHostileValuesWithinTheirParameter) {
  const std::string hostile = R"(a"] [evil@1 x="y\z)";
  auto event = event_with("{}");
  event.attributes["resource"] = hostile;
  const json read = parsed(message(event, {}));
  EXPECT_EQ(read.at("sd").size(), 1u);
  const std::string escaped = R"(a\"\] [evil@1 x=\"y\\z)";  // this parser leaves the escapes as they are
  EXPECT_EQ(read.at("sd").at("driftd@32473").at("resource"), escaped);
  event.attributes["resource"] = "ends with \\";
  EXPECT_NE(message(event, {}).find(R"(resource="ends with \\" change=)"), std::string::npos);
}

TEST(SyslogMessage, IsOneLineWhateverTheEventContains) {
  auto event = event_with(body_with({{"changes", {{{"path", "a\nb"}, {"new_value", "\"x\r\n<0>1 forged\""}}}}}));
  event.attributes["backend"] = "ca\nche";
  const std::string text = message(event, {});
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(parsed(text).at("sd").at("driftd@32473").at("backend"), "ca che");
}

TEST(SyslogMessage, SaysWhatChangedAndHowUrgentItIs) {
  const json change = {{"path", "config.timeout"}, {"change_class", "config"}, {"old_value", "0"}, {"new_value", "77"}};
  const json read = parsed(message(
      event_with(body_with({{"changes", {change}}, {"reconciliation_status", "pending"}, {"drift_id", "d-1"}})), {}));
  EXPECT_EQ(read.at("severity"), "warning");
  EXPECT_EQ(read.at("facility"), "local0");
  EXPECT_EQ(read.at("timestamp"), "2025-11-21T08:10:30.950Z");
  EXPECT_EQ(read.at("msg"), "cache server/server: config.timeout 0 -> 77 (pending, d-1)");
}

TEST(SyslogMessage, SaysAbsentOfAValueThatIsNotThereOrEmpty) {
  const json added = {{"path", "a"}, {"old_value", ""}, {"new_value", "1"}},
             removed = {{"path", "b"}, {"old_value", "2"}};
  EXPECT_EQ(parsed(message(event_with(body_with({{"changes", {added, removed}}})), {})).at("msg"),
            "cache server/server: a (absent) -> 1 b 2 -> (absent)");
}

TEST(SyslogMessage, OfABodyOfAnotherShapeHasTheAttributesOnly) {
  for (const json& changes : {json("abc"), json("99"), json(7), json::object(), json::array(), json(nullptr)}) {
    EXPECT_EQ(parsed(message(event_with(body_with({{"changes", changes}})), {})).at("msg"),
              "cache server/server: config.updated")
        << changes;
  }
  EXPECT_EQ(parsed(message(event_with(std::string(100'000, '[')), {})).at("msg"),
            "cache server/server: config.updated");
}

TEST(SyslogMessage, HasTheSeverityOfWhatHappened) {
  const auto health = [](const char* state) {
    return body_with({{"changes", {{{"change_class", "health"}, {"new_value", std::string("\"") + state + "\""}}}}});
  };
  const std::vector<std::pair<std::string, std::string>> expected = {
      {health("down"), "err"},
      {health("degraded"), "warning"},
      {health("up"), "notice"},
      {body_with({{"reconciliation_status", "approved"}}), "notice"},
      {body_with({{"operation", "created"}}), "info"},
      {"not JSON", "info"}};
  for (const auto& [body, severity] : expected)
    EXPECT_EQ(parsed(message(event_with(body), {})).at("severity"), severity) << body;
  auto agent = event_with(body_with({{"what", "gap"}, {"message", "3 events are lost"}}));
  agent.agent_event = true;
  EXPECT_EQ(parsed(message(agent, {})).at("severity"), "err");
  EXPECT_EQ(parsed(message(agent, {})).at("msg"), "gap: 3 events are lost");
}

TEST(SyslogMessage, CutsItsTextAndNeverItsStructuredDataOrACharacter) {
  Form form;
  form.max_bytes = 600;
  for (int more = 0; more < 4; ++more) {
    std::string long_value(static_cast<std::size_t>(more), 'x');
    for (int i = 0; i < 500; ++i) long_value += "\u00fc";
    const std::string text =
        message(event_with(body_with({{"changes", {{{"path", "p"}, {"new_value", long_value}}}}})), form);
    EXPECT_LE(text.size(), 600u);
    const json read = parsed(text);
    EXPECT_EQ(read.at("sd").at("driftd@32473").at("id"), "id-1");
    EXPECT_TRUE(read.at("msg").get<std::string>().ends_with(" [cut]"));
  }
}

}  // namespace
}  // namespace driftd::test
