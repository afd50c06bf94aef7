// SPDX-License-Identifier: Apache-2.0
#include "terraform/settings.hpp"

#include "common/settings_reader.hpp"

namespace driftd::terraform {
namespace {

using common::SettingsReader;
using nlohmann::json;

constexpr std::chrono::hours kMaxTime{24};

std::vector<DeclarationRule> parse_declares(SettingsReader& from) {
  std::vector<DeclarationRule> out;
  for (auto& rule : from.objects("declares")) {
    out.push_back({rule.required_text("resources", "a glob over resource types, for example postgresql_*"),
                   rule.text("provider"), rule.required_text("backend", "the name of a backend of driftd"),
                   rule.text("database")});
    rule.finish();
  }
  return out;
}

void parse_discover(SettingsReader discover, Settings& out) {
  out.label_prefix = discover.text("label_prefix", out.label_prefix);
  for (auto& rule : discover.objects("resources")) {
    out.discover.push_back({rule.required_text("resources", "a glob over resource types, for example aws_db_instance"),
                            rule.text("labels", "labels"), rule.text("endpoint"), rule.text("port"),
                            rule.text("version"), rule.text("type"), rule.text("username_attribute"),
                            rule.text("password_attribute")});
    rule.finish();
  }
  discover.finish();
}

/// `path` is short for a backend of type local. Throws INVALID unless exactly one of them is given.
json parse_backend(SettingsReader& from) {
  const std::string path = from.text("path");
  if (from.has("backend")) {
    if (!path.empty()) from.refuse("path", "either path or backend", "both", "remove one of them");
    from.object("backend").required_text("type", "the type of a Terraform backend, for example s3");
    return from.raw("backend");
  }
  if (path.empty()) {
    from.refuse("path", "the absolute path of a terraform.tfstate file, or a backend with its type", "neither",
                "add one of them to settings");
  }
  return {{"type", "local"}, {"path", path}};
}

}  // namespace

Settings parse_settings(std::string_view text) {
  const json root = common::parse_settings_json(text);
  SettingsReader from(root);
  Settings out;
  out.backend = parse_backend(from);
  out.workspace = from.text("workspace", out.workspace);
  if (out.workspace.empty() || out.workspace.find('/') != std::string::npos) {
    from.refuse("workspace", "the name of a workspace", "'" + out.workspace + "'");
  }
  out.connect = from.ms("connect_timeout_ms", out.connect, kMaxTime);
  out.call = from.ms("call_timeout_ms", out.call, kMaxTime);
  out.poll = from.ms("poll_interval_ms", out.poll, kMaxTime);
  out.scope = common::read_scope(from);
  out.registration_scope.exclude = out.scope.exclude;
  out.sensitive = from.texts("sensitive");
  out.declares = parse_declares(from);
  parse_discover(from.object("discover"), out);
  from.finish();
  json shape = {out.scope.text(), out.sensitive, root.value("declares", json()), root.value("discover", json())};
  out.fingerprint =
      std::to_string(std::hash<std::string>{}(shape.dump(-1, ' ', false, json::error_handler_t::replace)));
  return out;
}

}  // namespace driftd::terraform
