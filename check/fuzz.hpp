// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "check/check.hpp"

namespace driftd::check {

/// Makes random settings that `schema` allows by changing parts of `given`. Sensitive settings hold one of `tokens`.
/// The only network peer that appears is port 1 on loopback. The same seed gives the same settings.
class SettingsFuzz {
 public:
  SettingsFuzz(std::string schema_json, std::string given_json, std::vector<std::string> tokens,
               std::mt19937_64& random);
  /// Returns the next settings that the host would accept. Empty if a hundred tries gave none.
  std::string next();

 private:
  const std::string schema_, given_;
  const std::vector<std::string> tokens_;
  std::mt19937_64& random_;
};

/// Returns `given` with a token in each sensitive setting of the schema, including those that `given` lacks. Settings
/// inside lists are left out. Adds each planted token and its bytes to `tokens`.
std::string plant_tokens(const std::string& schema_json, const std::string& given_json, std::mt19937_64& random,
                         std::map<std::string, std::string>& tokens);

}  // namespace driftd::check
