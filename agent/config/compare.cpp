// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "config/config.hpp"

namespace driftd::config {
namespace {

const core::BackendSpec* find_backend(const std::vector<core::BackendSpec>& all, const std::string& name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& spec) { return spec.name == name; });
  return at == all.end() ? nullptr : &*at;
}
const SinkSpec* find_sink(const std::vector<SinkSpec>& all, const std::string& name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& sink) { return sink.name == name; });
  return at == all.end() ? nullptr : &*at;
}

bool same(const core::Budgets& a, const core::Budgets& b) {
  return a.rss_bytes == b.rss_bytes && a.call == b.call && a.records == b.records && a.bytes == b.bytes &&
         a.cpu == b.cpu && a.files == b.files && a.threads == b.threads;
}
bool same(const core::Route& a, const core::Route& b) {
  return a.change == b.change && a.backend == b.backend && a.kind == b.kind && a.labels == b.labels && a.to == b.to;
}

std::vector<ProgramUse> programs_of(const Config& config, const std::string& backend) {
  std::vector<ProgramUse> out;
  std::copy_if(config.program_uses.begin(), config.program_uses.end(), std::back_inserter(out),
               [&](const ProgramUse& use) { return use.backend == backend; });
  return out;
}

void compare_backend(const core::BackendSpec& a, const core::BackendSpec& b, Comparison& out) {
  const std::string at = "backends." + a.name;
  const auto restart = [&](bool differs, const char* what) {
    if (differs) out.restart.push_back(at + "." + what);
  };
  restart(a.was != b.was, "was");
  restart(a.provider != b.provider, "provider");
  restart(a.endpoint != b.endpoint, "endpoint");
  restart(a.settings_json != b.settings_json || a.secrets != b.secrets, "settings");
  restart(a.redact != b.redact, "redact");
  restart(a.labels != b.labels, "labels");
  restart(a.patterns != b.patterns, "patterns");
  restart(a.interval != b.interval, "interval");
  restart(a.isolation != b.isolation, "isolation");
  restart(a.discover != b.discover, "discover");
  restart(a.spoken_by != b.spoken_by, "spoken_by");
  restart(!same(a.budgets, b.budgets), "budgets");
  if (a.rules->generation != b.rules->generation) out.hot.push_back("rules of backend " + a.name);
}

void compare_backends(const Config& running, const Config& next, Comparison& out) {
  for (const auto& spec : running.backends) {
    const auto* other = find_backend(next.backends, spec.name);
    if (other == nullptr) {
      out.restart.push_back("backends." + spec.name + " (removed)");
    } else {
      compare_backend(spec, *other, out);
      if (programs_of(running, spec.name) != programs_of(next, spec.name)) {
        out.restart.push_back("backends." + spec.name + ".settings (${exec:…})");
      }
    }
  }
  for (const auto& spec : next.backends) {
    if (find_backend(running.backends, spec.name) == nullptr) out.restart.push_back("backends." + spec.name + " (added)");
  }
}

void compare_sinks(const Config& running, const Config& next, Comparison& out) {
  for (const auto& sink : running.sinks) {
    const auto* other = find_sink(next.sinks, sink.name);
    const bool equal = other != nullptr && other->type == sink.type && other->settings_json == sink.settings_json &&
                       other->secrets == sink.secrets;
    if (!equal) out.restart.push_back("sinks." + sink.name + (other == nullptr ? " (removed)" : ""));
  }
  for (const auto& sink : next.sinks) {
    if (find_sink(running.sinks, sink.name) == nullptr) out.hot.push_back("sinks." + sink.name + " (added)");
  }
}

bool same(const Agent& a, const Agent& b) {
  return a.name == b.name && a.cluster == b.cluster && a.data_dir == b.data_dir && a.plugin_dirs == b.plugin_dirs &&
         a.experimental == b.experimental && a.plugin_lock == b.plugin_lock &&
         a.plugin_lock_named == b.plugin_lock_named && a.worker == b.worker && a.jail_required == b.jail_required && a.programs == b.programs && a.drain == b.drain;
}
bool same(const Admin& a, const Admin& b) {
  return a.listen == b.listen && a.socket == b.socket && a.socket_group == b.socket_group &&
         a.read_group == b.read_group && a.decide_group == b.decide_group && a.uids == b.uids && a.gids == b.gids;
}
bool same(const log::Settings& a, const log::Settings& b) {
  return a.level == b.level && a.format == b.format && a.rooms == b.rooms;
}
bool same(const Retention& a, const Retention& b) {
  return a.delivered == b.delivered && a.undelivered == b.undelivered && a.audit == b.audit;
}
bool same(const Delivery& a, const Delivery& b) {
  return a.max_backlog_bytes == b.max_backlog_bytes && a.max_backlog_events == b.max_backlog_events &&
         a.drop_pending == b.drop_pending;
}

}  // namespace

Comparison compare(const Config& running, const Config& next) {
  Comparison out;
  if (!same(running.agent, next.agent)) out.restart.push_back("agent");
  if (!same(running.log, next.log)) out.restart.push_back("log");
  if (!same(running.admin, next.admin)) out.restart.push_back("admin");
  if (running.metrics.prefix != next.metrics.prefix) out.restart.push_back("metrics");
  if (!same(running.retention, next.retention)) out.restart.push_back("retention");
  if (!same(running.delivery, next.delivery)) out.restart.push_back("delivery");
  compare_backends(running, next, out);
  compare_sinks(running, next, out);
  const bool routes = std::equal(running.routes.begin(), running.routes.end(), next.routes.begin(), next.routes.end(),
                                 [](const auto& a, const auto& b) { return same(a, b); });
  if (!routes) out.hot.push_back("routes");
  return out;
}

}  // namespace driftd::config
