// SPDX-License-Identifier: Apache-2.0
#include "store/fields.hpp"

#include <nlohmann/json.hpp>

#include "base/escape.hpp"
#include "core/value/value.hpp"

namespace driftd::store {
namespace {

using Json = nlohmann::json;  // strings and counts only: no compared number passes through it

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::optional<std::string> string_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

void append_string(std::string& out, std::string_view text) {
  out += core::render(core::Value(valid_utf8(std::string(text))));
}

}  // namespace

tl::unexpected<Error> corrupt_column(const std::string& expected) {
  return fail(Code::corrupt, "store: a column holds no " + expected + "; restore the store from a backup");
}

std::string to_text(const std::map<std::string, std::string>& values) {
  if (values.empty()) return "{}";
  return dump(values);
}

std::string to_text(const std::vector<std::string>& values) {
  if (values.empty()) return "[]";
  return dump(values);
}

std::string to_text(const std::vector<core::Change>& values) {
  std::string out = "[";
  for (const auto& change : values) {
    out += out.size() > 1 ? R"(,{"class":)" : R"({"class":)";
    append_string(out, core::render(change.cls));
    if (change.new_value) append_string(out += R"(,"new":)", *change.new_value);
    if (change.old_value) append_string(out += R"(,"old":)", *change.old_value);
    append_string(out += R"(,"path":)", change.path);
    out += change.redacted ? R"(,"redacted":true})" : "}";
  }
  return out + "]";
}

Result<std::map<std::string, std::string>> parse_strings(const std::string& text) {
  std::map<std::string, std::string> out;
  if (text == "{}") return out;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return corrupt_column("JSON object of strings");
  for (const auto& [name, value] : json.items()) {
    if (!value.is_string()) return corrupt_column("JSON object of strings");
    out.emplace(name, value.get<std::string>());
  }
  return out;
}

Result<std::map<std::string, std::int64_t>> parse_counts(const std::string& text) {
  std::map<std::string, std::int64_t> out;
  if (text == "{}") return out;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return corrupt_column("JSON object of counts");
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number_integer()) return corrupt_column("JSON object of counts");
    out.emplace(name, value.get<std::int64_t>());
  }
  return out;
}

Result<std::vector<std::string>> parse_list(const std::string& text) {
  std::vector<std::string> out;
  if (text == "[]") return out;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return corrupt_column("JSON array of strings");
  for (const auto& value : json) {
    if (!value.is_string()) return corrupt_column("JSON array of strings");
    out.push_back(value.get<std::string>());
  }
  return out;
}

Result<std::vector<core::Change>> parse_changes(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return corrupt_column("JSON array of changes");
  std::vector<core::Change> out;
  for (const auto& item : json) {
    const auto path = item.is_object() ? string_at(item, "path") : std::nullopt;
    const auto cls = path ? string_at(item, "class") : std::nullopt;
    if (!cls) return corrupt_column("JSON array of changes");
    DRIFTD_TRY(const auto parsed, core::parse_class(*cls));
    out.push_back({*path, parsed, string_at(item, "old"), string_at(item, "new"), item.contains("redacted")});
  }
  return out;
}

}  // namespace driftd::store
