// SPDX-License-Identifier: Apache-2.0
#include "secrets/plain_references.hpp"

#include <algorithm>

#include "base/secret_text.hpp"
#include "config/secrets.hpp"
#include "core/value/value.hpp"
#include "ipc/settings_schema.hpp"

namespace driftd::secrets {
namespace {

/// Returns an address of the settings for display, without user info and query. If it came by reference and does not
/// look like an address, the reference is shown instead.
std::string shown_address(const core::BackendSpec& spec, const std::string& given, const core::Value* registered) {
  const auto secret = spec.secrets.find(given);
  if (secret == spec.secrets.end()) {
    const std::string cut = without_credentials(given);
    return may_hold_secret(cut) ? std::string("[REDACTED]") : cut;
  }
  const std::string shown = ipc::displayed_setting(secret->second);
  const bool named = registered != nullptr && registered->string() != nullptr;
  return shown == "[REDACTED]" && named ? *registered->string() : shown;
}

/// Returns the endpoint that the settings name, for display and events: `address`, `endpoints` or `path`. `settings`
/// must have its references unresolved, so that values from references can be told apart.
std::string endpoint_of(const core::BackendSpec& spec, const core::Value& settings) {
  const auto parsed = core::parse(spec.registration_json);
  const core::Value* registered = parsed ? parsed->find("settings") : nullptr;
  for (const char* name : {"address", "endpoints", "path"}) {
    const core::Value* value = settings.find(name);
    const core::Value* as_written = registered == nullptr ? nullptr : registered->find(name);
    if (value == nullptr) continue;
    const std::string* text = value->string();
    // its program has not answered yet
    if (text != nullptr && config::is_token(*text) && !spec.secrets.contains(*text)) continue;
    if (text != nullptr) return shown_address(spec, *text, as_written);
    if (value->array() == nullptr) continue;
    std::string out;
    for (std::size_t i = 0; i < value->array()->size(); ++i) {
      const std::string* one = (*value->array())[i].string();
      const auto* list = as_written == nullptr ? nullptr : as_written->array();
      const core::Value* written = list != nullptr && i < list->size() ? &(*list)[i] : nullptr;
      if (one != nullptr) out += (out.empty() ? "" : ",") + shown_address(spec, *one, written);
    }
    return out;
  }
  return {};
}

}  // namespace

const core::ProviderInfo* find_plugin(const std::vector<core::SessionFactory::ScanResult>& plugins,
                                      const std::string& provider) {
  for (const auto& plugin : plugins) {
    if (!plugin.info || (*plugin.info)->sink) continue;
    const core::ProviderInfo& info = **plugin.info;
    if (plugin.file == provider) return &info;
    const bool alias = std::find(info.types.begin(), info.types.end(), provider) != info.types.end();
    if (info.id == provider || alias) return &info;
  }
  return nullptr;
}

const core::ProviderInfo* find_sink_plugin(const std::vector<core::SessionFactory::ScanResult>& plugins,
                                           const std::string& plugin) {
  for (const auto& one : plugins) {
    if (!one.info || !(*one.info)->sink) continue;
    if (one.file == plugin || (*one.info)->id == plugin) return one.info->get();
  }
  return nullptr;
}

Status reveal_plain_references(core::BackendSpec& spec, const std::vector<core::SessionFactory::ScanResult>& plugins) {
  const core::ProviderInfo* info = find_plugin(plugins, spec.provider);
  if (info == nullptr) return {};
  DRIFTD_TRY(const core::Value as_given, core::parse(spec.settings_json));
  if (spec.endpoint.empty()) spec.endpoint = endpoint_of(spec, as_given);
  DRIFTD_CHECK(ipc::resolve_plain_settings(spec.settings_json, spec.secrets, info->settings_schema));
  if (spec.provider.find('/') != std::string::npos) spec.type = info->id;
  return {};
}

}  // namespace driftd::secrets
