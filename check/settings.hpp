// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "check/check.hpp"

namespace driftd::check {

/// Settings as `open` gets them.
struct Settings {
  std::string json;                            ///< sensitive values are tokens; empty if there are no settings
  std::string missing;                         ///< why there are no settings
  std::map<std::string, std::string> secrets;  ///< token → bytes
};

/// Reads a settings file: YAML or JSON, with the content of a backend's `settings:`. Literal values of `writeOnly`
/// settings become tokens, which `seed` makes reproducible. Returns `invalid` with the file, the setting, what was
/// expected and what was found, but never with a value. If `schema_json` is empty (the plugin did not deliver one),
/// values stay as they are. For a sink `${tcp}`, `${udp}`, `${unix}` and `${unixgram}` stay in the text, and are
/// validated as ports and paths.
Result<Settings> read_settings(std::string_view text, const std::string& file, std::string_view schema_json,
                               std::uint64_t seed, PluginKind kind = PluginKind::provider);

/// Returns `{}` if the schema requires no setting. Otherwise returns no settings and the reason.
Settings default_settings(std::string_view schema_json);

}  // namespace driftd::check
