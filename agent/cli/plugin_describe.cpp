// SPDX-License-Identifier: Apache-2.0
// Prints a plugin's description: its settings and attributes as tables.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

using core::Value;

void line(const Context& context, const std::string& name, const std::string& value) {
  if (!value.empty())
    context.out() << name << std::string(name.size() < 13 ? 13 - name.size() : 1, ' ') << printable(value) << "\n";
}

/// `driftd.watch/1, driftd.discover/1`
std::string extensions(const Value& plugin) {
  std::string out;
  for (const auto& one : list(plugin, "extensions")) {
    out += (out.empty() ? "" : ", ") + text(one, "id") + "/" + text(one, "revision");
  }
  return out;
}

std::string metrics(const Value& plugin) {
  std::string out;
  for (const auto& one : list(plugin, "metrics")) {
    const std::string unit = text(one, "unit");
    out += (out.empty() ? "" : ", ") + text(one, "name") + (unit.empty() || unit == "1" ? "" : " (" + unit + ")");
  }
  return out;
}

/// `string (path)`, `array of string`, `one of a | b`
std::string type_of(const Value& schema) {
  const auto choices = list(schema, "enum");
  if (!choices.empty()) {
    std::string out = "one of ";
    for (const auto& choice : choices) out += (out.size() == 7 ? "" : " | ") + text(choice);
    return out;
  }
  const Value type = member(schema, "type");
  std::string out = type.array() != nullptr ? join(*type.array()) : text(schema, "type");
  const std::string format = text(schema, "format");
  if (!format.empty()) out += " (" + format + ")";
  if (out == "array") out += " of " + type_of(member(schema, "items"));
  return out;
}

struct Setting {
  std::string path;
  bool required = false;
};

void add_setting(const Setting& setting, const Value& schema, Table& table);

void add_settings(const std::string& prefix, const Value& schema, Table& table) {
  const Value properties = member(schema, "properties");
  if (properties.object() == nullptr) return;
  const auto required = list(schema, "required");
  for (const auto& [name, below] : *properties.object()) {
    bool needed = false;
    for (const auto& one : required) needed = needed || text(one) == name;
    add_setting({prefix + name, needed}, below, table);
  }
}

void add_setting(const Setting& setting, const Value& schema, Table& table) {
  const bool sensitive = flag(schema, "writeOnly");
  table.add({setting.path,
             type_of(schema),
             text(schema, "default"),
             setting.required ? "yes" : "",
             {sensitive ? "yes" : "", Colour::yellow},
             text(schema, "description")});
  add_settings(setting.path + ".", schema, table);
  add_settings(setting.path + "[].", member(schema, "items"), table);
}

/// Returns an attribute's rules other than type and class: `unit redis, sensitive`.
std::string other_rules(const Value& attribute) {
  std::string out;
  if (attribute.object() == nullptr) return out;
  for (const auto& [name, value] : *attribute.object()) {
    if (name == "type" || name == "class") continue;
    const std::string shown = text(value);
    out += (out.empty() ? "" : ", ") + name + (shown == "true" ? "" : " " + shown);
  }
  return out;
}

void show_kind(const Context& context, const std::string& kind, const Value& schema) {
  const std::string title = text(schema, "title"), revision = text(schema, "revision");
  context.out() << "\nkind " << printable(kind) << ": " << printable(title) << " (class "
                << printable(text(schema, "class")) << (revision.empty() ? "" : ", revision " + printable(revision))
                << ")\n";
  Table table({"ATTRIBUTE", "TYPE", "CLASS", "RULES"});
  const Value attributes = member(schema, "attributes");
  if (attributes.object() != nullptr) {
    for (const auto& [path, one] : *attributes.object()) {
      table.add({path, text(one, "type"), text(one, "class"), other_rules(one)});
    }
  }
  context.print(table, "no attribute is declared: all are compared as they are");
}

void show_plugin(const Context& context, const Value& plugin) {
  line(context, "plugin", text(plugin, "id") + " " + text(plugin, "version"));
  line(context, "file", text(plugin, "file"));
  line(context, "sha256", text(plugin, "sha256"));
  line(context, "pin", text(plugin, "pin"));
  line(context, "error", text(plugin, "error"));
  line(context, "types", join(list(plugin, "types")));
  line(context, "extensions", extensions(plugin));
  line(context, "concurrency", text(plugin, "concurrency"));
  line(context, "metrics", metrics(plugin));
  for (const auto& use : list(plugin, "used_by")) {
    const Value worker = member(use, "worker");
    line(context, "used by", text(use, "backend") + " (" + text(worker, "state") + ")");
    line(context, "jail", text(worker, "jail"));
  }
  if (!flag(plugin, "ok")) return;
  context.out() << "\nsettings\n";
  Table settings({"SETTING", "TYPE", "DEFAULT", "REQUIRED", "SENSITIVE", "DESCRIPTION"});
  add_settings("", member(plugin, "settings"), settings);
  context.print(settings, "it has no settings");
  const Value kinds = member(plugin, "kinds");
  if (kinds.object() == nullptr) return;
  for (const auto& [kind, schema] : *kinds.object()) show_kind(context, kind, schema);
}

}  // namespace

void add_plugin_describe(CLI::App& plugin, Context& context) {
  auto* command = plugin.add_subcommand("describe", "what a plugin offers: kinds, settings, attributes, extensions");
  auto query = std::make_shared<Query>();
  command->add_option("NAME", (*query)["name"], "its id, type or file, or a backend that uses it")->required();
  command->callback([&context, query] {
    context.exit = context.print(context.client().get("/v1/plugins/describe", *query),
                                 [&](const auto& answer) { show_plugin(context, answer); });
  });
}

}  // namespace driftd::cli
