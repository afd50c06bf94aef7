// SPDX-License-Identifier: Apache-2.0
#include "config/plugin_sink.hpp"

#include "config/parts.hpp"
#include "core/value/value.hpp"

namespace driftd::config {
namespace {

using std::chrono::milliseconds;

/// The budgets of a sink's worker; those of a refresh have no meaning for it.
core::Budgets read_sink_budgets(Section section) {
  core::Budgets out;
  out.rss_bytes = section.bytes("rss", out.rss_bytes, 16 << 20);
  out.cpu = section.duration("cpu", out.cpu, milliseconds(100), milliseconds(3'600'000));
  out.files = static_cast<int>(section.integer("files", out.files, 32, 1024));
  out.threads = static_cast<int>(section.integer("threads", out.threads, 16, 4096));
  section.close();
  return out;
}

}  // namespace

sinks::PluginSettings read_plugin_sink(Section& sink, const Settings& settings) {
  sinks::PluginSettings out;
  out.plugin = sink.required_text("plugin", "a sink plugin, such as syslog, or the path of a .so");
  if (out.plugin.find('/') != std::string::npos) out.plugin = beside_config(sink.report(), out.plugin);
  const Node* node = sink.find("settings");
  if (node != nullptr && node->kind != Node::Kind::map) sink.wrong("settings", *node, "a map, see the plugin's README");
  const core::Value* given = settings.with_tokens.find("settings");
  if (given != nullptr && given->object() != nullptr) out.settings_json = core::render(*given);
  out.secrets = settings.secrets;
  out.timeout = sink.duration("timeout", out.timeout, milliseconds(100), milliseconds(300'000));
  out.max_events = static_cast<std::size_t>(sink.integer("max_events", 0, 1, 256));
  out.max_calls = static_cast<std::size_t>(sink.integer("max_calls", 0, 1, 64));
  const std::string retry = sink.choice("retry", "", {"forever", "schedule"});
  if (retry == "forever") out.retry = sinks::PluginRetry::forever;
  if (retry == "schedule") out.retry = sinks::PluginRetry::schedule;
  out.budgets = read_sink_budgets(sink.section("budgets"));
  return out;
}

}  // namespace driftd::config
