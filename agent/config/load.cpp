// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <config_schema_json.hpp>
#include <fstream>
#include <sstream>

#include "config/load.hpp"
#include "config/parts.hpp"
#include "config/places.hpp"
#include "config/rights.hpp"

namespace driftd::config {
namespace {

/// A policy that nothing carries out must not look as if something did.
void warn_of_idle_enforcement(Report& report, const Config& config) {
  for (const auto& spec : config.backends) {
    const auto& rules = *spec.rules;
    const bool by_class = std::any_of(rules.class_policy.begin(), rules.class_policy.end(),
                                      [](const auto& one) { return one.second == core::Action::enforce; });
    const bool by_rule = std::any_of(rules.policy.begin(), rules.policy.end(),
                                     [](const auto& rule) { return rule.action == core::Action::enforce; });
    if ((!by_class && !by_rule) || spec.enforce.allowed()) continue;
    const std::string missing = spec.enforce.allowed_globally ? "`enforce: true` of the backend" : "`enforce.enabled`";
    report.warn(
        {}, "backend '" + spec.name + "' has policies 'enforce', but nothing is put back: " + missing + " is not set",
        "set both, or use manual");
  }
}

Config read_root(Report& report, const Node& node, const LoadOptions& options) {
  Config config;
  config.file = report.file;
  config.secrets_resolved = options.resolve_secrets;
  Section root(report, &node, "", "the file");
  config.agent = read_agent(root.section("agent"), options);
  config.log = read_log(root.section("log"));
  config.admin = read_admin(root.section("admin"));
  config.grpc = read_grpc(root.section("grpc"), options);
  config.change_log = read_change_log(root.section("change_log"), options);
  config.metrics = read_metrics(root.section("metrics"));
  config.enforce = read_enforce(root.section("enforce"), config.agent);
  Defaults defaults = read_defaults(root.section("defaults"));
  defaults.enforce = config.enforce.settings;
  config.defaults = std::make_shared<const Defaults>(std::move(defaults));
  read_backends(root, *config.defaults, options, config);
  config.resolve = read_resolve(root.section("resolve"), config);
  read_sinks(root, options, config);
  read_routes(root, config);
  config.retention = read_retention(root.section("retention"));
  config.delivery = read_delivery(root.section("delivery"));
  warn_of_idle_enforcement(report, config);
  config.notifications = read_notifications(root.section("notifications"));
  check_links(root, config);
  root.close();
  if (config.backends.empty() && report.errors.empty()) {
    report.warn({}, "no backends: there is nothing to watch", "add one under 'backends:'");
  }
  return config;
}

std::vector<ConfigError> file_error(const std::string& file, const std::string& why) {
  return {{file, {}, why, "a YAML file that this user may read", "", "see docs/configure.md"}};
}

tl::expected<std::string, std::vector<ConfigError>> read_text(const std::filesystem::path& file) {
  std::error_code code;
  if (!std::filesystem::exists(file, code)) return tl::unexpected(file_error(file.string(), "there is no such file"));
  if (std::filesystem::is_directory(file, code))
    return tl::unexpected(file_error(file.string(), "this is a directory"));
  std::ifstream in(file, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad()) return tl::unexpected(file_error(file.string(), "the file cannot be read"));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

/// Whoever can write the config decides whom the agent trusts, what it runs and where every event goes.
void check_rights(Report& report) {
  const Rights rights = inspect_rights(report.file);
  if (!rights.written.empty()) {
    report.error({}, "others may write this file, so it is not read: " + rights.written);
  } else if (!rights.replaced.empty()) {
    report.warn({}, "others may put another file in the place of this one: " + rights.replaced, "");
  }
}

}  // namespace

Loaded parse_reported(std::string_view text, const LoadOptions& options, Report& report) {
  auto node = parse_yaml(text, report.file);
  if (!node) return tl::unexpected(std::move(node.error()));
  check_duplicates(report, *node);
  Config config = read_root(report, *node, options);
  if (!report.errors.empty()) return tl::unexpected(report.errors);
  config.warnings = report.warnings;
  config.secret_files = report.secret_files;
  config.places = setting_positions(*node, config.agent.node);
  return config;
}

Loaded parse(std::string_view text, const std::string& file, const LoadOptions& options) {
  Report report{file, {}, {}, {}};
  return parse_reported(text, options, report);
}

Loaded load(const std::filesystem::path& file, const LoadOptions& options) {
  const auto text = read_text(file);
  if (!text) return tl::unexpected(text.error());
  Report report{file.string(), {}, {}, {}};
  check_rights(report);
  return parse_reported(*text, options, report);
}

tl::expected<std::string, std::vector<ConfigError>> read_admin_socket(const std::filesystem::path& file) {
  const auto text = read_text(file);
  if (!text) return tl::unexpected(text.error());
  Report report{file.string(), {}, {}, {}};
  const auto node = parse_yaml(*text, report.file);
  if (!node) return tl::unexpected(node.error());
  Section root(report, &*node, "", "the file");
  std::string socket = read_admin(root.section("admin")).socket;
  if (!report.errors.empty()) return tl::unexpected(report.errors);
  return socket;
}

std::string_view json_schema() { return config_schema_json; }

}  // namespace driftd::config
