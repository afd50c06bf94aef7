// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/types.hpp"
#include "terraform/settings.hpp"

namespace driftd::terraform {

/// A state file, format v4, as records: one `state`, an `instance` for each resource instance, an `output` for each
/// output. Bodies hold the file's own JSON text: no number passes through a double.
struct State {
  std::string lineage, serial, terraform_version;
  std::vector<sdk::Record> records;
};

/// Throws sdk::Failure: CORRUPT with line and column (no JSON, truncated, empty), UNSUPPORTED (another format version,
/// encrypted by OpenTofu). `lock_age_s` −1: not locked.
State parse_state(const std::string& text, const Settings& settings, std::int64_t lock_age_s);

/// Attribute names that hold secrets whatever the state says: password, token, private_key …
bool secret_name(std::string_view attribute);

}  // namespace driftd::terraform
