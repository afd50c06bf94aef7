// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "check/check.hpp"

namespace driftd::check {

/// Settings that `schema` allows, made by changing `given` here and there; `tokens` stand in sensitive ones. No peer
/// but loopback's port 1 is named. The same for the same seed.
class SettingsFuzz {
 public:
  SettingsFuzz(std::string schema_json, std::string given_json, std::vector<std::string> tokens,
               std::mt19937_64& random);
  /// The next one that the host would let pass, or empty when a hundred tries gave none.
  std::string next();

 private:
  const std::string schema_, given_;
  const std::vector<std::string> tokens_;
  std::mt19937_64& random_;
};

/// `given` with a token in each sensitive setting of the schema, also in those that were not given. Paths through lists
/// are left out. `tokens` gets what was planted.
std::string plant_tokens(const std::string& schema_json, const std::string& given_json, std::mt19937_64& random,
                         std::map<std::string, std::string>& tokens);

}  // namespace driftd::check
