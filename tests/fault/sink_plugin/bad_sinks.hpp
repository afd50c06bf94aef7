// SPDX-License-Identifier: Apache-2.0
// The sink of bad_sink.c in a real agent's delivery, with a worker that the test kills or replaces.
#pragma once

#include <boost/asio/post.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "host/host.hpp"
#include "sinks/plugin/plugin_sink.hpp"
#include "support/agent_run.hpp"
#include "support/patience.hpp"

namespace driftd::test {

constexpr const char* kCanary = "canary-7f3a9b-of-the-receiver";  ///< what the setting `token` stands for
constexpr int kCrashesToPark = 1'000;  ///< a test that kills on purpose does not want a pause of ten minutes

inline const std::string kPlugins = DRIFTD_BINARY_DIR "/tests/faulty_sinks/";

inline host::HostOptions host_options(asio::any_io_executor core, asio::any_io_executor io, int crashes_to_park) {
  using std::chrono::milliseconds;
  host::HostOptions options;
  options.core = std::move(core);
  options.io = std::move(io);
  options.worker = DRIFTD_BINARY_DIR "/bin/driftd-provider-host";
  options.grace = milliseconds(200);
  options.restart_first = milliseconds(5);
  options.restart_max = milliseconds(20);
  options.crashes_to_park = crashes_to_park;
  return options;
}

inline sinks::PluginSettings settings_of(const std::string& plugin, int port, const std::string& mode) {
  using std::chrono::milliseconds;
  sinks::PluginSettings settings;
  settings.plugin = plugin;
  settings.settings_json = nlohmann::json{{"port", port}, {"mode", mode}, {"token", "token-1"}}.dump();
  settings.secrets = {{"token-1", kCanary}};
  settings.timeout = mode == "hang" || mode == "spin" ? milliseconds(400) : milliseconds(20'000);
  settings.budgets.rss_bytes = kSanitized ? 0 : 96ll << 20;
  return settings;
}

inline AgentRun::MakeSink bad_sink(int port, const std::string& mode, int crashes_to_park = kCrashesToPark) {
  return [=](asio::any_io_executor core, asio::any_io_executor io, const Clock&) {
    return sinks::open_plugin("bad", settings_of(kPlugins + "bad_sink.so", port, mode),
                              host::make_session_factory(host_options(core, io, crashes_to_park)), nullptr, core);
  };
}

/// Returns the pid of the worker in what the sink says of itself; 0 if none runs.
inline int pid_in(const std::string& state) {
  std::smatch found;
  return std::regex_search(state, found, std::regex("pid (\\d+)")) ? std::stoi(found[1]) : 0;
}

/// A plugin in a folder that is watched for upgrades.
class UpgradedSink : public ::testing::Test {
 protected:
  void install(const std::string& version) const {
    std::filesystem::copy_file(kPlugins + version + ".so", dir_.file("next"));
    std::filesystem::rename(dir_.file("next"), plugins_.file("bad_sink.so"));
  }
  AgentRun::MakeSink sink(int port, const std::string& mode = "none") {
    return [this, port, mode](asio::any_io_executor core, asio::any_io_executor io, const Clock&) {
      host::HostOptions options = host_options(core, io, kCrashesToPark);
      options.plugin_dirs = {plugins_.path()};
      const auto sessions = host::make_session_factory(options);
      sessions->watch(true);
      stop_watching_ = [sessions, core] { asio::post(core, [sessions] { sessions->watch(false); }); };
      return sinks::open_plugin("bad", settings_of(plugins_.file("bad_sink.so"), port, mode), sessions, nullptr, core);
    };
  }
  TempDir dir_, plugins_;
  std::function<void()> stop_watching_;  ///< an agent's core thread does not end before
};

}  // namespace driftd::test
