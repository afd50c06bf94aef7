// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <map>
#include <set>

#include "host/host.hpp"
#include "integration/syslog/rsyslog.hpp"
#include "sinks/plugin/plugin_sink.hpp"
#include "support/agent_run.hpp"

namespace driftd::test {

inline constexpr std::size_t kEvents = 400;
inline constexpr const char* kPlugin = DRIFTD_BINARY_DIR "/sinks-examples/driftd-sink-syslog.so";

/// Makes the sink plugin of this file, in a real worker.
inline AgentRun::MakeSink plugin_sink(const std::string& plugin, const nlohmann::json& settings) {
  return [plugin, settings](asio::any_io_executor core, asio::any_io_executor io, const Clock&) {
    host::HostOptions options;
    options.core = core;
    options.io = io;
    options.worker = DRIFTD_BINARY_DIR "/bin/driftd-provider-host";
    options.jail_kills = true;
    sinks::PluginSettings sink;
    sink.plugin = plugin;
    sink.settings_json = settings.dump();
    return sinks::open_plugin("log", std::move(sink), host::make_session_factory(options), nullptr, core);
  };
}

inline AgentRun::MakeSink syslog_sink(const nlohmann::json& settings) { return plugin_sink(kPlugin, settings); }

inline std::string address(int port) { return "127.0.0.1:" + std::to_string(port); }

inline std::set<std::string> ids_of(const std::vector<nlohmann::json>& messages) {
  std::set<std::string> out;
  for (const auto& message : messages) out.insert(message.at("sd").at("driftd@32473").at("id"));
  return out;
}

/// Committed events, the example sink plugin, and a real rsyslogd that gets them.
class SyslogSink : public ::testing::Test {
 protected:
  /// Expects that each event arrived once, as RFC 5424 says, in the order of its resource.
  void expect_all(AgentRun& agent, const Rsyslog& server) {
    ASSERT_TRUE(eventually([&] { return agent.totals().acked == static_cast<std::int64_t>(kEvents); }))
        << agent.totals().acked << " acknowledged; " << agent.view().state << "; " << agent.view().last_error;
    ASSERT_TRUE(eventually([&] { return server.count() >= kEvents; })) << server.count() << " arrived";
    const auto messages = server.messages();
    EXPECT_EQ(messages.size(), kEvents);
    EXPECT_EQ(ids_of(messages).size(), kEvents);
    std::map<std::string, unsigned long> last;
    for (const auto& message : messages) {
      const auto& data = message.at("sd").at("driftd@32473");
      const unsigned long sequence = std::stoul(data.at("seq").get<std::string>());
      EXPECT_LT(last[data.at("key")], sequence);
      last[data.at("key")] = sequence;
      EXPECT_EQ(message.at("appname"), "driftd");
      EXPECT_EQ(message.at("msgid"), "config.updated");
      EXPECT_EQ(message.at("facility"), "local0");
      EXPECT_EQ(data.at("change"), "config.updated");
      EXPECT_EQ(data.at("backend"), "orders");
    }
  }
  Certificates certificates_;
  TempDir dir_;
};

}  // namespace driftd::test
