// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace driftd::ipc {

/// One mistake in a backend's settings. `path` is written as in the config: `settings.tls.ca`, `settings.hosts[0]`.
/// Values are never repeated, because they may be secrets.
struct SettingsError {
  std::string path;
  std::string message;  ///< what, expected, found, next step
};

/// Checks settings (JSON text) against a plugin's schema. Supports the subset of JSON Schema 2020-12 that plugins use:
/// type, properties, required, additionalProperties, enum, const, minimum, maximum, minLength, minItems, items, anyOf,
/// oneOf. Returns all mistakes; empty if the settings are valid. Returns `corrupt` if either text is not a JSON object.
/// [any thread]
Result<std::vector<SettingsError>> validate_settings(std::string_view schema_json, std::string_view settings_json);

/// Returns the paths of the settings that the schema calls `writeOnly` (secrets): `settings.password`; `[]` stands for
/// any list element. Returns `corrupt` if the schema is not a JSON object or a `writeOnly` in it is not true or false.
Result<std::vector<std::string>> sensitive_settings(std::string_view schema_json);

/// When the config was read, each secret reference became a token. Replaces the token by the value in settings that the
/// schema does not call sensitive; sensitive settings keep it. The values stay in `secrets`, because the scrubber must
/// know them. Idempotent. Fails as sensitive_settings() does, or if the settings are not valid JSON; they are unchanged
/// then.
Status resolve_plain_settings(std::string& settings_json, const std::map<std::string, std::string>& secrets,
                              std::string_view schema_json);

/// Returns the paths of texts and numbers that stand in sensitive settings (writeOnly) in the place of a reference:
/// they are secrets in clear text. `secrets` has the tokens of references. Fails as resolve_plain_settings() does.
Result<std::vector<std::string>> sensitive_literals(std::string_view settings_json,
                                                    const std::map<std::string, std::string>& secrets,
                                                    std::string_view schema_json);

/// Returns what people may see of a setting that was given by reference: an address (URLs, host:port, dotted names, an
/// absolute path) without user-info and query; [REDACTED] for anything else.
std::string displayed_setting(std::string_view value);

/// Returns the known name that `word` was probably meant to be (up to a third of its letters differ); empty if none.
std::string nearest_name(std::string_view word, const std::vector<std::string>& known);

}  // namespace driftd::ipc
