// SPDX-License-Identifier: Apache-2.0
#include "check/settings.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "check/sink/receiver.hpp"
#include "config/secrets.hpp"
#include "config/yaml.hpp"
#include "core/value/value.hpp"
#include "ipc/settings_schema.hpp"

namespace driftd::check {
namespace {

using Json = nlohmann::json;

/// Replaces sensitive values by tokens.
class Tokens {
 public:
  Tokens(std::uint64_t seed, Settings& out) : seed_(std::to_string(seed)), out_(out) {}

  Status replace(const Json& schema, Json& value, const std::string& path) {
    if (!schema.is_object()) return {};
    if (schema.value("writeOnly", Json(false)) == true) return add_secret(value, path);
    for (const char* alternatives : {"anyOf", "oneOf", "allOf"}) {
      for (const auto& alternative : schema.value(alternatives, Json::array())) {
        DRIFTD_CHECK(replace(alternative, value, path));
      }
    }
    if (value.is_object()) return replace_members(schema, value, path);
    if (!value.is_array() || !schema.contains("items")) return {};
    for (std::size_t i = 0; i < value.size(); ++i) {
      DRIFTD_CHECK(replace(schema["items"], value[i], fmt::format("{}[{}]", path, i)));
    }
    return {};
  }

 private:
  Status replace_members(const Json& schema, Json& value, const std::string& path) {
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [key, member] : value.items()) {
      const auto known = properties.find(key);
      const Json rest = schema.value("additionalProperties", Json());
      DRIFTD_CHECK(replace(known == properties.end() ? rest : *known, member, path + "." + key));
    }
    return {};
  }

  Status add_secret(Json& value, const std::string& path) {
    if (value.is_structured()) {
      for (const auto& [key, member] : value.items()) DRIFTD_CHECK(add_secret(member, path + "." + key));
      return {};
    }
    if (value.is_null() || (value.is_string() && out_.secrets.contains(value.get<std::string>()))) return {};
    std::string bytes = value.is_string() ? value.get<std::string>() : value.dump();
    if (config::looks_like_reference(bytes)) {
      return fail(Code::invalid, fmt::format("{}: expected the value itself, found a reference; driftd-check resolves "
                                             "none: write a value that only the test system knows",
                                             path));
    }
    const std::string token = "driftd-secret-" + to_hex(sha256(seed_ + '\0' + path)).substr(0, 24);
    out_.secrets[token] = std::move(bytes);
    value = token;
    return {};
  }

  const std::string seed_;
  Settings& out_;
};

Result<Json> parse_object(std::string_view text, const std::string& file) {
  const auto root = config::parse_yaml(text, file);
  if (!root) return fail(Code::invalid, config::render(root.error()));
  if (root->kind == config::Node::Kind::null) return Json::object();
  if (root->kind != config::Node::Kind::map) {
    return fail(Code::invalid,
                fmt::format("{}: expected a map of settings, as under `settings:` of a backend; found {}", file,
                            config::describe(*root, true)));
  }
  return Json::parse(core::render(config::to_value(*root)));
}

Status validate(const std::string& schema_json, const std::string& json, const std::string& file) {
  DRIFTD_TRY(const auto errors, ipc::validate_settings(schema_json, json));
  std::string text;
  for (const auto& error : errors)
    text += fmt::format("{}{}: {}: {}", text.empty() ? "" : "\n", file, error.path, error.message);
  return text.empty() ? Status() : fail(Code::invalid, text);
}

}  // namespace

Result<Settings> read_settings(std::string_view text, const std::string& file, std::string_view schema_json,
                               std::uint64_t seed, PluginKind kind) {
  DRIFTD_TRY(Json json, parse_object(text, file));
  if (schema_json.empty()) return Settings{json.dump(), {}, {}};
  const Json schema = Json::parse(schema_json, nullptr, false);
  Settings out;
  if (const auto replaced = Tokens(seed, out).replace(schema, json, "settings"); !replaced) {
    return fail(replaced.error().code, fmt::format("{}: {}", file, replaced.error().message));
  }
  out.json = json.dump();
  const Addresses any{9, 9, "/run/stream", "/run/datagram"};
  const std::string valid = kind == PluginKind::sink ? with_addresses(out.json, any) : out.json;
  DRIFTD_CHECK(validate(std::string(schema_json), valid, file));
  return out;
}

Settings default_settings(std::string_view schema_json) {
  const auto errors = ipc::validate_settings(schema_json, "{}");
  if (!errors || errors->empty()) return {"{}", {}, {}};
  std::string names;
  for (const auto& error : *errors) {
    const std::string name = error.path.starts_with("settings.") ? error.path.substr(9) : error.path;
    names += (names.empty() ? "`" : ", `") + name + "`";
  }
  return {{}, fmt::format("needs --settings FILE: {} {} required", names, errors->size() == 1 ? "is" : "are"), {}};
}

}  // namespace driftd::check
