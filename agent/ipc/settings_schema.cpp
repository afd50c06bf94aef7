// SPDX-License-Identifier: Apache-2.0
#include "ipc/settings_schema.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace driftd::ipc {
namespace {

using Json = nlohmann::json;
using Errors = std::vector<SettingsError>;

void check(const Json& schema, const Json& value, const std::string& path, Errors& errors);

bool is_of(const Json& value, const std::string& type) {
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  return type == "null" && value.is_null();
}

std::vector<std::string> texts(const Json& schema, const char* member) {
  std::vector<std::string> out;
  const auto found = schema.find(member);
  if (found == schema.end()) return out;
  if (found->is_string()) out.push_back(found->get<std::string>());
  if (!found->is_array()) return out;
  for (const auto& item : *found) out.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  return out;
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " | ") + word;
  return out;
}

bool check_type(const Json& schema, const Json& value, const std::string& path, Errors& errors) {
  const auto types = texts(schema, "type");
  if (types.empty()) return true;
  for (const auto& type : types) {
    if (is_of(value, type)) return true;
  }
  errors.push_back({path, fmt::format("expected {}, found {}", join(types),
                                      value.is_number_float() ? "a fraction" : value.type_name())});
  return false;
}

void check_scalar(const Json& schema, const Json& value, const std::string& path, Errors& errors) {
  const auto one_of = schema.find("enum");
  if (one_of != schema.end() && std::find(one_of->begin(), one_of->end(), value) == one_of->end()) {
    errors.push_back({path, fmt::format("expected one of {}", join(texts(schema, "enum")))});
  }
  if (schema.contains("const") && schema["const"] != value) {
    errors.push_back({path, "expected " + schema["const"].dump()});
  }
  if (value.is_number() && schema.contains("minimum") && value < schema["minimum"]) {
    errors.push_back({path, fmt::format("expected at least {}, found {}", schema["minimum"].dump(), value.dump())});
  }
  if (value.is_number() && schema.contains("maximum") && value > schema["maximum"]) {
    errors.push_back({path, fmt::format("expected at most {}, found {}", schema["maximum"].dump(), value.dump())});
  }
  if (value.is_string() && schema.contains("minLength") &&
      value.get_ref<const std::string&>().size() < schema["minLength"].get<std::size_t>()) {
    errors.push_back({path, schema["minLength"] == 1 ? "must not be empty"
                                                     : "expected at least " + schema["minLength"].dump() + " bytes"});
  }
}

void check_unknown(const Json& schema, const std::string& key, const Json& value, const std::string& path,
                   Errors& errors) {
  const auto rest = schema.find("additionalProperties");
  if (rest == schema.end() || *rest == true) return;
  if (rest->is_object()) return check(*rest, value, path + "." + key, errors);
  std::vector<std::string> known;
  const Json properties = schema.value("properties", Json::object());
  for (const auto& item : properties.items()) known.push_back(item.key());
  const std::string meant = nearest_name(key, known);
  errors.push_back({path + "." + key, meant.empty() ? "unknown setting; known are " + join(known)
                                                    : "unknown setting; did you mean `" + meant + "`?"});
}

void check_object(const Json& schema, const Json& value, const std::string& path, Errors& errors) {
  const Json properties = schema.value("properties", Json::object());
  for (const auto& key : texts(schema, "required")) {
    if (!value.contains(key)) errors.push_back({path + "." + key, "is missing; this setting is required"});
  }
  for (const auto& [key, member] : value.items()) {
    const auto found = properties.find(key);
    if (found == properties.end()) {
      check_unknown(schema, key, member, path, errors);
    } else {
      check(*found, member, path + "." + key, errors);
    }
  }
}

void check_array(const Json& schema, const Json& value, const std::string& path, Errors& errors) {
  if (schema.contains("minItems") && value.size() < schema["minItems"].get<std::size_t>()) {
    errors.push_back(
        {path, fmt::format("expected at least {} element(s), found {}", schema["minItems"].dump(), value.size())});
  }
  if (!schema.contains("items")) return;
  for (std::size_t i = 0; i < value.size(); ++i)
    check(schema["items"], value[i], fmt::format("{}[{}]", path, i), errors);
}

/// Checks anyOf and oneOf. If no alternative fits, reports the mistakes of the one with the fewest.
void check_alternatives(const Json& schema, const char* member, const Json& value, const std::string& path,
                        Errors& errors) {
  const auto found = schema.find(member);
  if (found == schema.end() || !found->is_array() || found->empty()) return;
  std::size_t holding = 0;
  Errors nearest;
  for (const auto& alternative : *found) {
    Errors own;
    check(alternative, value, path, own);
    holding += own.empty() ? 1 : 0;
    if (nearest.empty() || own.size() < nearest.size()) nearest = std::move(own);
  }
  if (holding == 0) errors.insert(errors.end(), nearest.begin(), nearest.end());
  if (holding > 1 && std::string_view(member) == "oneOf") {
    errors.push_back({path, "fits more than one of the alternatives; give only one of them"});
  }
}

void check(const Json& schema, const Json& value, const std::string& path, Errors& errors) {
  if (schema.is_boolean()) {
    if (schema == false) errors.push_back({path, "is not allowed here"});
    return;
  }
  if (!schema.is_object() || !check_type(schema, value, path, errors)) return;
  check_scalar(schema, value, path, errors);
  if (value.is_object()) check_object(schema, value, path, errors);
  if (value.is_array()) check_array(schema, value, path, errors);
  check_alternatives(schema, "anyOf", value, path, errors);
  check_alternatives(schema, "oneOf", value, path, errors);
}

Status collect_sensitive(const Json& schema, const std::string& path, std::vector<std::string>& out) {
  if (!schema.is_object()) return {};
  const auto secret = schema.find("writeOnly");
  if (secret != schema.end() && !secret->is_boolean()) {
    return fail(Code::corrupt,
                fmt::format("settings schema: {}: `writeOnly` must be true or false, found {}", path,
                            secret->dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100)));
  }
  if (secret != schema.end() && secret->get<bool>()) out.push_back(path);
  if (const auto properties = schema.find("properties"); properties != schema.end() && properties->is_object()) {
    for (const auto& item : properties->items())
      DRIFTD_CHECK(collect_sensitive(item.value(), path + "." + item.key(), out));
  }
  const auto items = schema.find("items");
  return items == schema.end() ? Status{} : collect_sensitive(*items, path + "[]", out);
}

Result<Json> parse_object(std::string_view text, const char* what) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return fail(Code::corrupt, fmt::format("{}: expected a JSON object", what));
  return json;
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0 : 1)});
      corner = above;
    }
  }
  return row[b.size()];
}

}  // namespace

Result<std::vector<SettingsError>> validate_settings(std::string_view schema_json, std::string_view settings_json) {
  DRIFTD_TRY(const Json schema, parse_object(schema_json, "settings schema"));
  DRIFTD_TRY(const Json settings, parse_object(settings_json, "settings"));
  Errors errors;
  try {
    check(schema, settings, "settings", errors);
  } catch (const Json::exception& e) {  // a keyword of the schema has a type that JSON Schema forbids
    return fail(Code::corrupt, fmt::format("settings schema: {}", e.what()));
  }
  return errors;
}

Result<std::vector<std::string>> sensitive_settings(std::string_view schema_json) {
  DRIFTD_TRY(const Json schema, parse_object(schema_json, "settings schema"));
  std::vector<std::string> out;
  DRIFTD_CHECK(collect_sensitive(schema, "settings", out));
  return out;
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const auto& name : known) {
    const std::size_t d = distance(word, name);
    if (d < least) {
      least = d;
      best = name;
    }
  }
  return best;
}

}  // namespace driftd::ipc
