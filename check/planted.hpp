// SPDX-License-Identifier: Apache-2.0
// Secrets that a check plants into the settings of a plugin.
#pragma once

#include <driftd/provider.h>

#include "check/check.hpp"

namespace driftd::check {

/// Settings, and the secrets that their tokens stand for.
struct SecretSettings {
  std::string settings;
  std::map<std::string, std::string> secrets;
};

/// Returns the given settings, and the same settings with wrong secrets. If no secrets were given, returns settings
/// with tokens planted into the sensitive settings of the schema. `id` is the check's, for its random numbers. Throws
/// CheckNotApplicable if nothing is sensitive.
std::vector<SecretSettings> secret_settings(const Subject& subject, const std::string& settings_schema, const char* id);

/// Passes the bytes on pages of their own, which become inaccessible when `use` returns. For CallFaults.deliver_secret.
void deliver_on_own_page(const std::string& bytes, driftd_use_fn use, void* user);

}  // namespace driftd::check
