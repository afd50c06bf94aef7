// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace driftd::check {

/// Settings as `open` gets them.
struct Settings {
  std::string json;                            ///< sensitive values are tokens; empty: none
  std::string missing;                         ///< why there are none
  std::map<std::string, std::string> secrets;  ///< token → bytes
};

/// Reads a settings file (YAML or JSON: what stands under `settings:` of a backend). Literal values of `writeOnly`
/// settings become tokens, which `seed` makes. `invalid` names file, setting, expected and found, never a value.
/// Without a schema (a provider that cannot tell it) they stay as they are.
Result<Settings> read_settings(std::string_view text, const std::string& file, std::string_view schema_json,
                               std::uint64_t seed);

/// `{}` when the schema asks for nothing; else the reason why there are none.
Settings default_settings(std::string_view schema_json);

}  // namespace driftd::check
