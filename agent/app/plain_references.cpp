// SPDX-License-Identifier: Apache-2.0
#include "app/plain_references.hpp"

#include <algorithm>

#include "config/secrets.hpp"
#include "core/value.hpp"
#include "host/settings_schema.hpp"

namespace driftd::app {
namespace {

/// The endpoint that the settings name, for people and events: `address`, `endpoints` or `path`.
std::string endpoint_of(const core::Value& settings) {
  for (const char* name : {"address", "endpoints", "path"}) {
    const core::Value* value = settings.find(name);
    if (value == nullptr) continue;
    if (value->string() != nullptr && config::is_token(*value->string())) continue;  // a program has not answered yet
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
    if (plugin.file == provider) return &info;
    const bool alias = std::find(info.types.begin(), info.types.end(), provider) != info.types.end();
    if (info.id == provider || alias) return &info;
  }
  return nullptr;
}

Status reveal_plain_references(core::BackendSpec& spec, const std::vector<core::SessionFactory::Found>& plugins) {
  const core::ProviderInfo* info = find_plugin(plugins, spec.provider);
  if (info == nullptr) return {};
  DRIFTD_CHECK(host::reveal_plain(spec.settings_json, spec.secrets, info->settings_schema));
  if (spec.provider.find('/') != std::string::npos) spec.type = info->id;
  DRIFTD_TRY(const core::Value plain, core::parse(spec.settings_json));
  if (spec.endpoint.empty()) spec.endpoint = endpoint_of(plain);
  return {};
}

}  // namespace driftd::app
