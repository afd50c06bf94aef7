// SPDX-License-Identifier: Apache-2.0
#include "terraform/settings.hpp"

#include <nlohmann/json.hpp>

#include "driftd/sdk/types.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

std::vector<DeclarationRule> parse_declares(Fields& from) {
  std::vector<DeclarationRule> out;
  for (const auto& one : from.list("declares")) {
    Fields rule(one, "settings.declares[" + std::to_string(out.size()) + "]");
    out.push_back({rule.required("resources", "a glob over resource types, for example postgresql_*"),
                   rule.text("provider"), rule.required("backend", "the name of a backend of driftd"),
                   rule.text("database")});
    rule.finish();
  }
  return out;
}

void parse_discover(Fields& from, Settings& out) {
  Fields discover(from.object("discover"), "settings.discover");
  out.label_prefix = discover.text("label_prefix", out.label_prefix);
  for (const auto& one : discover.list("resources")) {
    Fields rule(one, "settings.discover.resources[" + std::to_string(out.discover.size()) + "]");
    out.discover.push_back({rule.required("resources", "a glob over resource types, for example aws_db_instance"),
                            rule.text("labels", "labels"), rule.text("endpoint"), rule.text("port"),
                            rule.text("version"), rule.text("type"), rule.text("username_attribute"),
                            rule.text("password_attribute")});
    rule.finish();
  }
  discover.finish();
}

/// `path` is short for a backend of type local.
json parse_backend(Fields& from) {
  const std::string path = from.text("path");
  json backend = from.object("backend");
  if (!path.empty() && !backend.empty()) from.invalid("path", "either it or 'backend', not both");
  if (!path.empty()) return {{"type", "local"}, {"path", path}};
  if (!backend.contains("type") || !backend["type"].is_string()) {
    from.invalid("path", "the absolute path of a terraform.tfstate file, or a 'backend' with its 'type'");
  }
  return backend;
}

}  // namespace

Fields::Fields(const json& from, std::string where) : from_(from), where_(std::move(where)) {
  if (!from.is_object()) throw sdk::Failure(DRIFTD_INVALID, where_ + ": expected a JSON object");
}

void Fields::invalid(const std::string& name, const std::string& expected) const {
  throw sdk::Failure(DRIFTD_INVALID, where_ + "." + name + ": expected " + expected);
}

std::string Fields::text(const char* name, std::string fallback) {
  known_.insert(name);
  const auto found = from_.find(name);
  if (found == from_.end() || found->is_null()) return fallback;
  if (!found->is_string()) invalid(name, "text");
  return found->get<std::string>();
}

std::string Fields::required(const char* name, const char* expected) {
  std::string out = text(name);
  if (out.empty()) invalid(name, expected);
  return out;
}

bool Fields::flag(const char* name, bool fallback) {
  known_.insert(name);
  const auto found = from_.find(name);
  if (found == from_.end()) return fallback;
  if (!found->is_boolean()) invalid(name, "true or false");
  return found->get<bool>();
}

std::chrono::milliseconds Fields::ms(const char* name, std::chrono::milliseconds fallback) {
  known_.insert(name);
  const auto found = from_.find(name);
  if (found == from_.end()) return fallback;
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() == 0 || found->get<std::uint64_t>() > 86'400'000) {
    invalid(name, "a number of milliseconds from 1 to a day");
  }
  return std::chrono::milliseconds(found->get<std::int64_t>());
}

std::vector<std::string> Fields::texts(const char* name) {
  std::vector<std::string> out;
  for (const auto& one : list(name)) {
    if (!one.is_string()) invalid(name, "a list of texts");
    out.push_back(one.get<std::string>());
  }
  return out;
}

std::map<std::string, std::string> Fields::map(const char* name) {
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : object(name).items()) {
    if (!value.is_string()) invalid(name, "texts by name");
    out[key] = value.get<std::string>();
  }
  return out;
}

const json& Fields::object(const char* name) {
  static const json kNone = json::object();
  known_.insert(name);
  const auto found = from_.find(name);
  if (found == from_.end() || found->is_null()) return kNone;
  if (!found->is_object()) invalid(name, "an object");
  return *found;
}

const json& Fields::list(const char* name) {
  static const json kNone = json::array();
  known_.insert(name);
  const auto found = from_.find(name);
  if (found == from_.end() || found->is_null()) return kNone;
  if (!found->is_array()) invalid(name, "a list");
  return *found;
}

void Fields::finish() const {
  for (const auto& item : from_.items()) {
    if (known_.contains(item.key())) continue;
    std::string known;
    for (const auto& name : known_) known += (known.empty() ? "" : ", ") + name;
    invalid(item.key(), "no such setting here; known are " + known);
  }
}

Settings parse_settings(std::string_view text) {
  const json root = json::parse(text, nullptr, false);
  Fields from(root, "settings");
  Settings out;
  out.backend = parse_backend(from);
  out.workspace = from.text("workspace", out.workspace);
  if (out.workspace.empty() || out.workspace.find('/') != std::string::npos) {
    from.invalid("workspace", "the name of a workspace, not '" + out.workspace + "'");
  }
  out.connect = from.ms("connect_timeout_ms", out.connect);
  out.call = from.ms("call_timeout_ms", out.call);
  out.poll = from.ms("poll_interval_ms", out.poll);
  out.scope.include = from.texts("include");
  out.scope.exclude = from.texts("exclude");
  out.registration_scope.exclude = out.scope.exclude;
  out.sensitive = from.texts("sensitive");
  out.declares = parse_declares(from);
  parse_discover(from, out);
  from.finish();
  json shape = {out.scope.text(), out.sensitive, root.value("declares", json()), root.value("discover", json())};
  out.fingerprint =
      std::to_string(std::hash<std::string>{}(shape.dump(-1, ' ', false, json::error_handler_t::replace)));
  return out;
}

}  // namespace driftd::terraform
