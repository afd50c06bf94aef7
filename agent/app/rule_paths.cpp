// SPDX-License-Identifier: Apache-2.0
#include "app/rule_paths.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/log.hpp"
#include "config/errors.hpp"
#include "core/scope.hpp"
#include "secrets/plain_references.hpp"

namespace driftd::app {
namespace {

using config::ConfigError;

/// Attributes of the agent's own kinds. A rule that names no kind is for them, too.
const std::set<std::string> kOwnAttributes{"gone", "system_identity", "claimed_by"};

/// Returns the first name of a path. Empty if it does not begin with one name.
std::string first_name(const std::string& path) {
  std::string out = path.substr(0, path.find_first_of(".["));
  if (path.starts_with("[\"")) out = path.substr(2, path.find("\"]", 2) - 2);
  return out.find_first_of("*?[]\\\"") == std::string::npos ? out : std::string();
}

/// Returns the position at the end of `driftd.yaml:14:17`.
config::Position position_of(const std::string& where) {
  config::Position out;
  const std::size_t column = where.rfind(':');
  const std::size_t line = column == std::string::npos || column == 0 ? column : where.rfind(':', column - 1);
  if (column == std::string::npos || line == std::string::npos) return out;
  std::from_chars(where.data() + line + 1, where.data() + column, out.line);
  std::from_chars(where.data() + column + 1, where.data() + where.size(), out.column);
  return out;
}

/// The paths that attributes of some kinds have, as the schemas write them.
struct Paths {
  std::set<std::string> first_names;
  std::vector<std::string> whole;
};

/// Adds what a kind has. Returns false if it may have others, too.
bool add(const core::KindSchema& schema, Paths& to) {
  for (const auto& rule : schema.rules()) {
    const std::string first = first_name(rule.path.text());
    if (first.empty()) return false;
    to.first_names.insert(first);
    to.whole.push_back(rule.path.text());
  }
  return true;
}

class RulePaths {
 public:
  RulePaths(const config::Config& config, const core::BackendSpec& spec, const core::ProviderInfo& info)
      : config_(config),
        spec_(spec),
        info_(info) {
    const auto describe = core::parse(info.describe);
    const core::Value* complete = describe ? describe->find("complete") : nullptr;
    if (complete == nullptr || complete->array() == nullptr) return;
    for (const auto& kind : *complete->array()) {
      if (kind.string() != nullptr) complete_.insert(*kind.string());
    }
  }

  void check(const core::Match& match, const std::string& path, const std::string& where) {
    const std::string first = first_name(path);
    const std::optional<Paths> known = first.empty() || of_defaults(where) ? std::nullopt : paths_of(match);
    if (!known || known->first_names.contains(first)) return;
    const bool for_own = !match.kind || std::any_of(core::kOwnKinds.begin(), core::kOwnKinds.end(),
                                                    [&](std::string_view kind) { return match.kind->matches(kind); });
    if (for_own && kOwnAttributes.contains(first)) return;
    const std::string nearest = nearest_to(path, *known);
    warnings.push_back({config_.file, position_of(where),
                        "backend '" + spec_.name + "': this rule does nothing: no attribute of " +
                            (match.kind ? "kind '" + match.kind->text() + "'" : "any kind") + " has this path",
                        nearest.empty() ? names(*known) : nearest, "'" + path + "'",
                        "see `driftd schema " + info_.id + " KIND`"});
  }
  std::vector<ConfigError> warnings;

 private:
  /// Rules of `defaults` are for the backends of all providers.
  bool of_defaults(const std::string& where) const {
    const auto same = [&](const auto& rule) { return rule.where == where; };
    const auto has = [&](const auto& rules) { return std::any_of(rules.begin(), rules.end(), same); };
    const core::Rules rules = config::rules_of(*config_.defaults);
    return has(rules.policy) || has(rules.ignore) || has(rules.expect);
  }

  /// Returns the paths of the kinds that a rule is for. Absent if there may be others, or if there is no such kind.
  std::optional<Paths> paths_of(const core::Match& match) const {
    Paths out;
    bool any = false;
    for (const auto& kind : info_.kinds) {
      if (match.kind && !match.kind->matches(kind)) continue;
      const auto schema = info_.schemas.find(kind);
      any = true;
      if (!complete_.contains(kind) || schema == info_.schemas.end() || !add(*schema->second, out)) return {};
    }
    return any ? std::optional(std::move(out)) : std::nullopt;
  }

  /// Returns the path that ends with this one, else one that is spelled nearly so. Empty if there is none.
  static std::string nearest_to(const std::string& path, const Paths& known) {
    const auto ends = [&](const std::string& whole) { return whole.ends_with("." + path); };
    const auto found = std::find_if(known.whole.begin(), known.whole.end(), ends);
    return found == known.whole.end() ? config::nearest(path, known.whole) : *found;
  }

  static std::string names(const Paths& known) {
    std::string out;
    for (const auto& name : known.first_names) out += (out.empty() ? "a path that begins with " : ", ") + name;
    return out;
  }

  const config::Config& config_;
  const core::BackendSpec& spec_;
  const core::ProviderInfo& info_;
  std::set<std::string> complete_;
};

}  // namespace

std::vector<ConfigError> unknown_rule_paths(const config::Config& config, const core::BackendSpec& spec,
                                            const core::ProviderInfo& info) {
  RulePaths paths(config, spec, info);
  if (!spec.rules) return {};
  for (const auto& rule : spec.rules->policy) {
    if (rule.match.path) paths.check(rule.match, rule.match.path->text(), rule.where);
  }
  for (const auto& rule : spec.rules->ignore) {
    if (rule.match.path) paths.check(rule.match, rule.match.path->text(), rule.where);
  }
  for (const auto& rule : spec.rules->expect) {
    for (const auto& [path, value] : rule.attributes) paths.check(rule.match, path.render(), rule.where);
  }
  return std::move(paths.warnings);
}

void warn_of_rule_paths(const config::Config& config, const std::vector<core::SessionFactory::ScanResult>& plugins) {
  for (const auto& spec : config.backends) {
    const core::ProviderInfo* info = secrets::find_plugin(plugins, spec.provider);
    if (info == nullptr) continue;
    for (const auto& warning : unknown_rule_paths(config, spec, *info))
      log::room("config").warn("{}", config::render(warning));
  }
}

}  // namespace driftd::app
