// SPDX-License-Identifier: Apache-2.0
#include "app/plain_references.hpp"

#include <algorithm>

#include "core/value.hpp"
#include "host/settings_schema.hpp"

namespace driftd::app {
namespace {

struct Walk {
  const std::vector<std::string>& sensitive;
  std::map<std::string, std::string>& secrets;

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

/// The endpoint that the settings name, for people and events: `address`, `endpoints` or `path`.
std::string endpoint_of(const core::Value& settings) {
  for (const char* name : {"address", "endpoints", "path"}) {
    const core::Value* value = settings.find(name);
    if (value == nullptr) continue;
    if (value->string() != nullptr) return *value->string();
    if (value->array() == nullptr) continue;
    std::string out;
    for (const auto& one : *value->array()) {
      if (one.string() != nullptr) out += (out.empty() ? "" : ",") + *one.string();
    }
    return out;
  }
  return {};
}

}  // namespace

const core::ProviderInfo* find_plugin(const std::vector<core::SessionFactory::Found>& plugins, const std::string& provider) {
  for (const auto& plugin : plugins) {
    if (!plugin.info) continue;
    const core::ProviderInfo& info = **plugin.info;
    const bool alias = std::find(info.types.begin(), info.types.end(), provider) != info.types.end();
    if (info.id == provider || alias) return &info;
  }
  return nullptr;
}

Status reveal_plain_references(core::BackendSpec& spec, const std::vector<core::SessionFactory::Found>& plugins) {
  const core::ProviderInfo* info = find_plugin(plugins, spec.provider);
  if (info == nullptr) return {};
  DRIFTD_TRY(const auto sensitive, host::sensitive_settings(info->settings_schema));
  DRIFTD_TRY(const core::Value settings, core::parse(spec.settings_json));
  const core::Value plain = Walk{sensitive, spec.secrets}(settings, "settings");
  spec.settings_json = core::render(plain);
  if (spec.endpoint.empty()) spec.endpoint = endpoint_of(plain);
  std::erase_if(spec.secrets, [&](const auto& secret) { return spec.settings_json.find(secret.first) == std::string::npos; });
  return {};
}

}  // namespace driftd::app
