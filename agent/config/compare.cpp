// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "config/config.hpp"
#include "config/places.hpp"
#include "config/registry.hpp"

namespace driftd::config {
namespace {

const SinkSpec* find_sink(const std::vector<SinkSpec>& all, const std::string& name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& sink) { return sink.name == name; });
  return at == all.end() ? nullptr : &*at;
}

bool same(const core::Budgets& a, const core::Budgets& b) {
  return a.rss_bytes == b.rss_bytes && a.call == b.call && a.records == b.records && a.bytes == b.bytes &&
         a.resources == b.resources && a.cpu == b.cpu && a.files == b.files && a.threads == b.threads;
}
bool same(const core::Route& a, const core::Route& b) {
  return a.change == b.change && a.backend == b.backend && a.kind == b.kind && a.labels == b.labels && a.to == b.to;
}

/// Returns the secrets without those of files, which are followed and need no restart.
std::map<std::string, std::string> fixed_secrets(const core::BackendSpec& spec, const std::vector<FileUse>& files) {
  auto out = spec.secrets;
  for (const auto& use : files) out.erase(use.token);
  return out;
}

/// Collects the settings that need a restart, with their positions in the next config.
class RestartList {
 public:
  RestartList(const Config& next, Comparison& out) : next_(next), out_(out) {}
  void add(bool differs, const std::string& what, const std::string& note = "") {
    if (!differs) return;
    const Position at = find_position(next_.places, what);
    const std::string where = at.line == 0 ? std::string() : next_.file + ":" + std::to_string(at.line);
    out_.restart.push_back({what + note, where});
  }
  void add_removed(const std::string& what) { out_.restart.push_back({what + " (removed)", {}}); }

 private:
  const Config& next_;
  Comparison& out_;
};

/// Returns true for two forms of a webhook that sign with other secrets and are the same else.
bool only_secrets_differ(const SinkSpec& a, const SinkSpec& b) {
  const auto* before = std::get_if<sinks::WebhookSettings>(&a.settings);
  const auto* after = std::get_if<sinks::WebhookSettings>(&b.settings);
  if (before == nullptr || after == nullptr || a.digests_only != b.digests_only) return false;
  sinks::WebhookSettings rekeyed = *before;
  rekeyed.secrets = after->secrets;
  return rekeyed == *after && before->secrets != after->secrets;
}

/// Returns true if the file that a chat message's template names has another content.
bool only_template_differs(const SinkSpec& a, const SinkSpec& b) {
  const auto* before = std::get_if<sinks::WebhookSettings>(&a.settings);
  const auto* after = std::get_if<sinks::WebhookSettings>(&b.settings);
  return before != nullptr && after != nullptr && !(before->chat == after->chat);
}

void compare_sinks(const Config& running, const Config& next, RestartList& restart_list, Comparison& out) {
  for (const auto& sink : running.sinks) {
    const auto* other = find_sink(next.sinks, sink.name);
    if (other == nullptr) {
      restart_list.add_removed("sinks." + sink.name);
      continue;
    }
    if (only_secrets_differ(sink, *other)) {
      out.hot.push_back("sinks." + sink.name + " (its signing secrets)");
      out.rekeyed.push_back(sink.name);
      continue;
    }
    const bool settings = other->type == sink.type && other->settings_json == sink.settings_json;
    if (settings && only_template_differs(sink, *other)) {
      restart_list.add(true, "sinks." + sink.name, " (its template)");
      continue;
    }
    const bool secrets = other->secrets == sink.secrets;
    restart_list.add(!settings || !secrets, "sinks." + sink.name, settings ? " (a secret)" : "");
  }
  for (const auto& sink : next.sinks) {
    if (find_sink(running.sinks, sink.name) == nullptr) out.hot.push_back("sinks." + sink.name + " (added)");
  }
}

void compare_agent(const Agent& a, const Agent& b, RestartList& restart_list) {
  restart_list.add(a.name != b.name, "agent.name");
  restart_list.add(a.node != b.node, "agent.node");
  restart_list.add(a.cluster != b.cluster, "agent.cluster");
  restart_list.add(a.data_dir != b.data_dir, "agent.data_dir");
  const bool same_key = a.installation_key_from == b.installation_key_from && a.installation_key == b.installation_key;
  restart_list.add(!same_key, "agent.installation_key");
  restart_list.add(a.plugin_dirs != b.plugin_dirs, "agent.plugin_dirs");
  restart_list.add(a.plugin_lock != b.plugin_lock || a.plugin_lock_named != b.plugin_lock_named, "agent.plugin_lock");
  restart_list.add(a.worker != b.worker, "agent.worker");
  restart_list.add(a.jail_required != b.jail_required, "agent.jail");
  restart_list.add(a.drain != b.drain, "agent.drain");
}

void compare_admin(const Admin& a, const Admin& b, RestartList& restart_list) {
  restart_list.add(a.listen != b.listen, "admin.listen");
  restart_list.add(a.socket != b.socket, "admin.socket");
  restart_list.add(a.socket_group != b.socket_group, "admin.socket_group");
  restart_list.add(a.read_group != b.read_group, "admin.read_group");
  restart_list.add(a.decide_group != b.decide_group, "admin.decide_group");
  restart_list.add(a.uids != b.uids, "admin.uids");
  restart_list.add(a.gids != b.gids, "admin.gids");
}

void compare_rest(const Config& a, const Config& b, RestartList& restart_list) {
  restart_list.add(a.enforce.off_file != b.enforce.off_file, "enforce.off_file");
  restart_list.add(a.log.level != b.log.level, "log.level");
  restart_list.add(a.log.format != b.log.format, "log.format");
  restart_list.add(a.log.rooms != b.log.rooms, "log.rooms");
  restart_list.add(a.metrics.prefix != b.metrics.prefix, "metrics.prefix");
  restart_list.add(a.retention.delivered != b.retention.delivered, "retention.delivered");
  restart_list.add(a.retention.undelivered != b.retention.undelivered, "retention.undelivered");
  restart_list.add(a.retention.history != b.retention.history, "retention.history");
  restart_list.add(a.retention.audit != b.retention.audit, "retention.audit");
  restart_list.add(a.retention.max_bytes != b.retention.max_bytes, "retention.max_bytes");
  restart_list.add(a.delivery.max_backlog_bytes != b.delivery.max_backlog_bytes, "delivery.max_backlog_bytes");
  restart_list.add(a.delivery.max_backlog_events != b.delivery.max_backlog_events, "delivery.max_backlog_events");
  restart_list.add(a.delivery.drop_pending != b.delivery.drop_pending, "delivery.drop_pending");
  restart_list.add(a.notifications != b.notifications, "notifications");
}

}  // namespace

std::vector<BackendEntry> entries_of(const Config& config) {
  std::vector<BackendEntry> out;
  for (const auto& spec : config.backends) {
    const Position at = find_position(config.places, "backends." + spec.name);
    out.push_back({spec,
                   uses_by_backend(config.program_uses, spec.name),
                   uses_by_backend(config.file_uses, spec.name),
                   {},
                   uses_by_backend(config.credential_uses, spec.name)});
    out.back().spec.defined_at = config.file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  }
  return out;
}

core::BackendEdit compare_backends(const BackendEntry& running, const BackendEntry& next,
                                   std::vector<std::string>& what) {
  const core::BackendSpec &a = running.spec, &b = next.spec;
  const std::size_t before = what.size();
  const auto note = [&what](bool differs, const char* name) {
    if (differs) what.emplace_back(name);
  };
  note(a.name != b.name, "name");
  note(a.provider != b.provider, "provider");
  note(a.redact != b.redact, "redact");
  note(a.isolation != b.isolation, "isolation");
  note(a.spoken_by != b.spoken_by, "spoken_by");
  note(!same(a.budgets, b.budgets), "budgets");
  const bool settings = a.settings_json == b.settings_json && running.files == next.files &&
                        fixed_secrets(a, running.files) == fixed_secrets(b, next.files);
  note(!settings || running.programs != next.programs, "settings");
  note(a.definition.empty() != b.definition.empty(), "source");
  note(a.fault != b.fault, "references");
  const bool session = what.size() != before;
  note(a.endpoint != b.endpoint, "endpoint");
  note(a.credentials_json != b.credentials_json, "credentials");
  note(a.labels != b.labels, "labels");
  note(a.patterns != b.patterns, "patterns");
  note(a.interval != b.interval, "interval");
  note(a.discover != b.discover, "discover");
  note(a.enforce != b.enforce, "enforce");
  note(a.rules->generation != b.rules->generation, "rules");
  if (session) return core::BackendEdit::reopen;
  if (what.size() != before || a.definition != b.definition || a.registration_json != b.registration_json) {
    return core::BackendEdit::in_place;
  }
  return core::BackendEdit::none;
}

Comparison compare(const Config& running, const Config& next) {
  Comparison out;
  RestartList restart_list(next, out);
  compare_agent(running.agent, next.agent, restart_list);
  compare_admin(running.admin, next.admin, restart_list);
  restart_list.add(running.grpc != next.grpc, "grpc");
  restart_list.add(running.change_log != next.change_log, "change_log");
  compare_rest(running, next, restart_list);
  compare_sinks(running, next, restart_list, out);
  const bool routes = std::equal(running.routes.begin(), running.routes.end(), next.routes.begin(), next.routes.end(),
                                 [](const auto& a, const auto& b) { return same(a, b); });
  if (!routes) out.hot.push_back("routes");
  if (running.resolve != next.resolve) out.hot.push_back("resolve");
  return out;
}

}  // namespace driftd::config
