// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <set>

#include "base/secret_text.hpp"
#include "config/parts.hpp"
#include "config/secrets.hpp"

namespace driftd::config {
namespace {

using std::chrono::milliseconds;

core::Value list_value(const std::vector<std::string>& texts) {
  core::Value::Array list;
  for (const auto& text : texts) list.emplace_back(text);
  return list;
}

core::Value map_value(const std::map<std::string, std::string>& texts) {
  core::Value::Object object;
  for (const auto& [key, text] : texts) object.emplace(key, text);
  return object;
}

/// Returns what an UPDATED event compares: everything that defines the backend, but not how often it is refreshed.
std::string registration(const core::BackendSpec& spec, const core::Value& settings, const core::Value& credentials) {
  core::Value::Object out{
      {"name", spec.name},    {"provider", spec.provider},        {"endpoint", spec.endpoint},
      {"settings", settings}, {"labels", map_value(spec.labels)}, {"patterns", list_value(spec.patterns)}};
  if (!credentials.is_null()) out.emplace("credentials", credentials);
  return core::render(std::move(out));
}

void check_name(Section& section, const std::string& name, std::set<std::string>& names) {
  if (name.empty()) return;
  Report& report = section.report();
  if (const std::string fault = core::invalid_name_reason(name); !fault.empty()) {
    report.error(section.at("name"), "a backend cannot be named '" + name + "': " + fault, "letters, digits, - _ .");
  } else if (!names.insert(name).second) {
    report.error(section.at("name"), "two backends are named '" + name + "'", "each name once", "",
                 "rename one of them");
  }
}

/// Reads the logins of applications: one level of names, each with a reference, or a user name in clear. They replace
/// the references of the settings as what `resolve` gives.
core::Value read_credentials(Section& section, const LoadOptions& options, const std::string& backend,
                             const std::vector<Program>& programs, std::vector<CredentialUse>& uses) {
  const Node* node = section.find("credentials");
  if (node == nullptr) return nullptr;
  if (node->kind != Node::Kind::map) {
    section.wrong("credentials", *node, "a map of names and references");
    return nullptr;
  }
  Report& report = section.report();
  for (const auto& member : node->members) {
    if (member.value.kind == Node::Kind::scalar) continue;
    report.error(member.value.at, "credential '" + member.key + "' of '" + backend + "' is not a text", "a reference");
  }
  Settings read = SettingsReader(report, options, backend, &programs).read(*node);
  for (const auto& use : read.programs) {
    report.error(use.at, "a program gives no credential to applications", "${file:…}, ${env:…} or ${credential:…}");
  }
  uses = std::move(read.references);
  return std::move(read.with_references);
}

void read_settings(Section& section, const LoadOptions& options, core::BackendSpec& spec, Config& config, bool here) {
  const Node* node = section.find("settings");
  const Node empty{Node::Kind::map, section.at(), {}, false, {}, {}};
  if (node != nullptr && node->kind != Node::Kind::map) {
    section.wrong("settings", *node, "a map, see the provider's README");
    node = nullptr;
  }
  const Node& used = node == nullptr ? empty : *node;
  Settings settings = SettingsReader(section.report(), options, spec.name, &config.agent.programs).read(used);
  spec.settings_json = core::render(settings.with_tokens);
  spec.secrets = std::move(settings.secrets);
  config.backend_settings_at[spec.name] = used.at;
  if (here) std::move(settings.programs.begin(), settings.programs.end(), std::back_inserter(config.program_uses));
  if (here) std::move(settings.files.begin(), settings.files.end(), std::back_inserter(config.file_uses));
  const core::Value credentials =
      read_credentials(section, options, spec.name, config.agent.programs, settings.references);
  spec.credentials_json = core::render(credentials);
  if (here)
    std::move(settings.references.begin(), settings.references.end(), std::back_inserter(config.credential_uses));
  spec.registration_json = registration(spec, settings.with_references, credentials);
}

/// Returns true if this agent runs the backend. `node:` of a backend is the pattern of the agents that do, in a fleet
/// that shares one configuration; without it, agents without a node do. A pattern that is not the node's exact name
/// gives each node a backend of its own: `cache` on node `n1` becomes `cache-n1`.
bool runs_here(Section& section, const std::string& node, std::string& suffix) {
  const std::string wanted = section.text("node");
  if (wanted.empty() || node.empty()) return wanted.empty() == node.empty();
  if (!core::Glob::of_name(wanted).matches(std::string_view(node))) return false;
  if (wanted != node) suffix = "-" + node;
  return true;
}

/// Rules that hide come before rules that show, and a backend's own rules before those of the defaults.
std::vector<core::RedactRule> read_redact(Section redact, std::vector<core::RedactRule> defaults) {
  std::vector<core::RedactRule> out;
  for (const bool show : {false, true}) {
    const std::string key = show ? "show" : "hide";
    for (const auto& path : redact.texts(key)) {
      const auto glob = core::Glob::parse_path(path);
      if (!glob) {
        redact.report().error(redact.at(key), "path '" + path + "' is not valid: " + glob.error().message,
                              "a name such as LOG_FORMAT, or a path such as containers.*.env.DB_HOST");
      }
      out.push_back({show, path});
    }
  }
  redact.close();
  std::move(defaults.begin(), defaults.end(), std::back_inserter(out));
  return out;
}

void check_former_names(Report& report, const std::vector<const Node*>& items, const std::set<std::string>& names) {
  std::set<std::string> former;
  for (const Node* item : items) {
    const Node* was = item->find("was");
    if (was == nullptr || was->kind != Node::Kind::scalar) continue;
    if (names.contains(was->text)) {
      report.error(was->at, "'was: " + was->text + "' names a backend that is still there", "the name it had before",
                   "", "remove 'was' or the other backend");
    } else if (!former.insert(was->text).second) {
      report.error(was->at, "two backends were '" + was->text + "'", "each former name once");
    }
  }
}

}  // namespace

core::BackendSpec read_backend(Section section, const Defaults& defaults, const LoadOptions& options, Config& config,
                               bool& here) {
  core::BackendSpec spec;
  spec.name = section.required_text("name", "a name that is unique among the backends");
  std::string suffix;
  here = runs_here(section, config.agent.node, suffix);
  spec.name += suffix;
  spec.was = section.text("was");
  if (!spec.was.empty()) spec.was += suffix;
  spec.provider = section.required_text("provider", "a provider, such as redis, postgres or terraform");
  if (spec.provider.find('/') != std::string::npos) spec.provider = beside_config(section.report(), spec.provider);
  spec.endpoint = without_credentials(section.text("endpoint"));
  spec.labels = section.text_map("labels");
  spec.patterns = section.texts("patterns");
  spec.interval = section.duration("interval", defaults.interval, milliseconds(100), milliseconds(86'400'000));
  spec.isolation = read_isolation(section, defaults.isolation);
  spec.budgets = read_budgets(section.section("budgets"), defaults.budgets);
  spec.discover = section.boolean("discover", true);
  spec.spoken_by = read_registrars(section);
  LoadOptions form_only = options;
  form_only.resolve_secrets = false;  // another node's secrets need not exist here
  read_settings(section, here ? options : form_only, spec, config, here);
  auto rules = defaults.rules;
  read_rules(section, rules, true);
  rules.generation = generation_of(rules);
  spec.rules = std::make_shared<const core::Rules>(std::move(rules));
  spec.enforce = read_backend_enforce(section, defaults.enforce);
  spec.redact = read_redact(section.section("redact"), defaults.redact);
  section.close();
  return spec;
}

core::SessionSpec::Isolation read_isolation(Section& section, core::SessionSpec::Isolation fallback) {
  using Isolation = core::SessionSpec::Isolation;
  const std::string text = section.choice("isolation", "", {"process", "in-process"});
  if (text.empty()) return fallback;
  return text == "process" ? Isolation::process : Isolation::in_process;
}

core::Budgets read_budgets(Section section, core::Budgets from) {
  from.rss_bytes = section.bytes("rss", from.rss_bytes, 16 << 20);
  from.cpu = section.duration("cpu", from.cpu, milliseconds(100), milliseconds(3'600'000));
  from.files = static_cast<int>(section.integer("files", from.files, 32, 1024));
  from.threads = static_cast<int>(section.integer("threads", from.threads, 16, 4096));
  from.call = section.duration("call", from.call, milliseconds(100), milliseconds(3'600'000));
  from.records =
      static_cast<std::uint64_t>(section.integer("records", static_cast<std::int64_t>(from.records), 1, 1'000'000'000));
  from.bytes = static_cast<std::uint64_t>(section.bytes("bytes", static_cast<std::int64_t>(from.bytes), 1 << 20));
  from.resources = static_cast<std::uint64_t>(
      section.integer("resources", static_cast<std::int64_t>(from.resources), 1, 100'000'000));
  section.close();
  return from;
}

Defaults read_defaults(Section section) {
  using core::Action;
  using core::ChangeClass;
  Defaults out;
  out.rules.class_policy = {{ChangeClass::config, Action::manual},
                            {ChangeClass::credential, Action::automatic},
                            {ChangeClass::endpoint, Action::automatic}};
  out.interval = section.duration("interval", out.interval, milliseconds(100), milliseconds(86'400'000));
  out.isolation = read_isolation(section, out.isolation);
  out.budgets = read_budgets(section.section("budgets"), out.budgets);
  read_rules(section, out.rules, false);
  out.redact = read_redact(section.section("redact"), {});
  section.close();
  return out;
}

void read_backends(Section& root, const Defaults& defaults, const LoadOptions& options, Config& config) {
  std::set<std::string> names;
  int elsewhere = 0;
  const auto items = root.items("backends");
  for (const Node* item : items) {
    const Node* name = item->find("name");
    const bool named = name != nullptr && name->kind == Node::Kind::scalar;
    const std::string title = named ? "backend '" + name->text + "'" : "a backend";
    Section section(root.report(), item, "backends[]", title);
    if (named && !looks_like_reference(name->text)) check_name(section, name->text, names);
    if (!section.present()) continue;
    bool here = true;
    auto spec = read_backend(std::move(section), defaults, options, config, here);
    const auto same = [&](const core::BackendSpec& other) { return other.name == spec.name; };
    if (here && name != nullptr && std::any_of(config.backends.begin(), config.backends.end(), same) &&
        names.contains(spec.name)) {
      root.report().error(name->at, "on node " + config.agent.node + " two backends are named '" + spec.name + "'",
                          "each name once", "", "rename one of them");
    }
    if (here) config.backends.push_back(std::move(spec));
    elsewhere += here ? 0 : 1;
  }
  check_former_names(root.report(), items, names);
  resolve_registrars(root.report(), items, names, config);
  if (elsewhere == 0 || !config.backends.empty()) return;
  const std::string where =
      config.agent.node.empty() ? "this agent has no 'agent.node'" : "'agent.node' is " + config.agent.node;
  root.report().warn(root.at("backends"), "none of the " + std::to_string(elsewhere) + " backends runs here: " + where,
                     "compare 'node' of the backends with it");
}

}  // namespace driftd::config
