// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace driftd::ipc {

/// One mistake in a backend's settings. `path` as people write it: `settings.tls.ca`, `settings.hosts[0]`. Values are
/// never repeated: they may be secrets.
struct SettingsError {
  std::string path;
  std::string message;  ///< what, expected, found, next step
};

/// Checks settings (JSON text) against a plugin's schema, the subset of JSON Schema 2020-12 that plugins use: type,
/// properties, required, additionalProperties, enum, const, minimum, maximum, minLength, minItems, items, anyOf, oneOf.
/// All mistakes at once; empty: valid. `corrupt` when either text is no JSON object. [any thread]
Result<std::vector<SettingsError>> validate_settings(std::string_view schema_json, std::string_view settings_json);

/// Paths of the settings that the schema calls `writeOnly` (secrets): `settings.password`; `[]` for any list element.
Result<std::vector<std::string>> sensitive_settings(std::string_view schema_json);

/// Settings that the schema does not call sensitive get their value in place of the token that every reference became
/// when the config was read; sensitive ones keep it. What was revealed stays in `secrets`: the scrubber must know it.
/// Doing it again changes nothing.
Status resolve_plain_settings(std::string& settings_json, const std::map<std::string, std::string>& secrets,
                              std::string_view schema_json);

/// What people see of a setting that was given by reference: an address (URLs, host:port, dotted names, an absolute
/// path) without user-info and query, anything else as [REDACTED].
std::string displayed_setting(std::string_view value);

/// The known name that was probably meant (a third of its letters differ at most), or empty.
std::string nearest_name(std::string_view word, const std::vector<std::string>& known);

}  // namespace driftd::ipc
