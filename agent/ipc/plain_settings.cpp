// SPDX-License-Identifier: Apache-2.0
// resolve_plain_settings() of settings_schema.hpp.
#include <algorithm>

#include "core/value/value.hpp"
#include "ipc/settings_schema.hpp"

namespace driftd::ipc {
namespace {

struct Walk {
  const std::vector<std::string>& sensitive;
  const std::map<std::string, std::string>& secrets;

  core::Value operator()(const core::Value& value, const std::string& path) const {
    if (const auto* members = value.object()) {
      core::Value::Object out;
      for (const auto& [name, member] : *members) out.emplace(name, (*this)(member, path + "." + name));
      return core::Value(std::move(out));
    }
    if (const auto* elements = value.array()) {
      core::Value::Array out;
      for (const auto& element : *elements) out.push_back((*this)(element, path + "[]"));
      return core::Value(std::move(out));
    }
    const std::string* text = value.string();
    if (text == nullptr || std::find(sensitive.begin(), sensitive.end(), path) != sensitive.end()) return value;
    const auto secret = secrets.find(*text);
    return secret == secrets.end() ? value : core::Value(secret->second);
  }
};

void find_literals(const Walk& by, const core::Value& value, const std::string& path, bool inside,
                   std::vector<std::string>& out) {
  inside = inside || std::find(by.sensitive.begin(), by.sensitive.end(), path) != by.sensitive.end();
  if (const auto* members = value.object()) {
    for (const auto& [name, member] : *members) find_literals(by, member, path + "." + name, inside, out);
  } else if (const auto* elements = value.array()) {
    for (const auto& element : *elements) find_literals(by, element, path + "[]", inside, out);
  } else if (inside) {
    const std::string* text = value.string();
    const bool empty = text != nullptr && text->empty();
    const bool token = text != nullptr && by.secrets.contains(*text);
    if (!empty && !token && value.boolean() == nullptr && value != core::Value()) out.push_back(path);
  }
}

}  // namespace

Result<std::vector<std::string>> sensitive_literals(std::string_view settings_json,
                                                    const std::map<std::string, std::string>& secrets,
                                                    std::string_view schema_json) {
  DRIFTD_TRY(const auto sensitive, sensitive_settings(schema_json));
  DRIFTD_TRY(const core::Value settings, core::parse(settings_json));
  std::vector<std::string> out;
  find_literals({sensitive, secrets}, settings, "settings", false, out);
  return out;
}

Status resolve_plain_settings(std::string& settings_json, const std::map<std::string, std::string>& secrets,
                              std::string_view schema_json) {
  DRIFTD_TRY(const auto sensitive, sensitive_settings(schema_json));
  DRIFTD_TRY(const core::Value settings, core::parse(settings_json));
  settings_json = core::render(Walk{sensitive, secrets}(settings, "settings"));
  return {};
}

}  // namespace driftd::ipc
