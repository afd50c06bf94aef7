// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "config/parts.hpp"
#include "core/value/path.hpp"

namespace driftd::config {
namespace {

/// All endings of subjects: those that follow `backend.<name>.`, and `agent.…` for agent events.
const std::vector<std::string> kSubjectEndings = {"created",
                                                  "updated",
                                                  "deleted",
                                                  "credentials.rotated",
                                                  "endpoint.changed",
                                                  "health.changed",
                                                  "config.updated",
                                                  "drift.decided",
                                                  "agent.gap",
                                                  "agent.dead_letter",
                                                  "agent.parked",
                                                  "agent.budget",
                                                  "agent.corrupt",
                                                  "agent.secret_denied",
                                                  "agent.upgrade_refused",
                                                  "agent.upgrade_reverted",
                                                  "agent.plugin_refused",
                                                  "agent.program_failed",
                                                  "agent.secret_file_failed",
                                                  "agent.incarnation",
                                                  "agent.key_rotated",
                                                  "agent.enforcement_stopped",
                                                  "agent.notification",
                                                  "agent.escalation",
                                                  "agent.audit_anchor"};

/// Reports each pattern that can match none of `names`. If `may_match_later`, patterns with a wildcard may match names
/// that do not exist yet.
void check_globs(Section& section, std::string_view key, std::string_view noun, const std::vector<std::string>& names,
                 bool may_match_later) {
  const Node* node = section.find(key);
  if (node == nullptr || node->kind != Node::Kind::list) return;
  for (const auto& item : node->items) {
    if (item.kind != Node::Kind::scalar) continue;
    const bool wild = item.text.find('*') != std::string::npos;
    const auto glob = core::Glob::of_name(item.text);
    const bool hit = std::any_of(names.begin(), names.end(), [&](const auto& name) { return glob.matches(name); });
    if (hit || (wild && may_match_later)) continue;
    const std::string next = suggest(item.text, names);
    section.report().error(item.at, std::string(noun) + " '" + item.text + "' does not exist",
                           next.empty() ? one_of(names) : "", "", next);
  }
}

void check_targets(Section& route, const Config& config, std::set<std::string>& used) {
  std::vector<std::string> names;
  for (const auto& sink : config.sinks) names.push_back(sink.name);
  const Node* to = route.find("to");
  if (to == nullptr || (to->kind == Node::Kind::list && to->items.empty())) {
    if (route.present()) route.report().error(route.at(), "a route has no sink", "to: [SINK, …]");
    return;
  }
  if (names.empty()) names.push_back("a sink under 'sinks:'");
  check_globs(route, "to", "sink", names, false);
  for (const auto& item : to->items) used.insert(item.text);
}

core::Route read_route(Section route, const Config& config, std::set<std::string>& used) {
  core::Route out;
  Section match = route.section("match");
  out.change = match.texts("change");
  out.backend = match.texts("backend");
  out.kind = match.texts("kind");
  out.labels = match.text_map("labels");
  check_globs(match, "change", "change", kSubjectEndings, false);
  std::vector<std::string> backends;
  for (const auto& backend : config.backends) backends.push_back(backend.name);
  check_globs(match, "backend", "backend", backends, true);
  match.close();
  out.to = route.texts("to");
  check_targets(route, config, used);
  route.close();
  return out;
}

}  // namespace

void read_routes(Section& root, Config& config) {
  std::set<std::string> used;
  const Node* node = root.find("routes");
  for (const Node* item : root.items("routes")) {
    config.routes.push_back(read_route(Section(root.report(), item, "routes[]", "a route"), config, used));
  }
  if (node == nullptr && !config.sinks.empty()) {
    core::Route all;
    for (const auto& sink : config.sinks) all.to.push_back(sink.name);
    config.routes.push_back(std::move(all));
    return;
  }
  for (const auto& sink : config.sinks) {
    if (!used.contains(sink.name)) {
      root.report().warn(sink.at, "no route leads to sink '" + sink.name + "': it gets nothing",
                         "name it in a route's 'to'");
    }
  }
}

}  // namespace driftd::config
