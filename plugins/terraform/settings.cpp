// SPDX-License-Identifier: Apache-2.0
#include "terraform/settings.hpp"

#include <nlohmann/json.hpp>

#include "driftd/sdk/types.hpp"

namespace driftd::terraform {

Settings parse_settings(std::string_view json) {
  const auto root = nlohmann::json::parse(json, nullptr, false);
  if (!root.is_object()) throw sdk::Failure(DRIFTD_INVALID, "settings: expected a JSON object");
  Settings out;
  try {
    out.path = root.value("path", "");
    out.scope.include = root.value("include", std::vector<std::string>{});
    out.scope.exclude = root.value("exclude", std::vector<std::string>{});
    out.sensitive = root.value("sensitive", std::vector<std::string>{});
  } catch (const nlohmann::json::exception& e) {
    throw sdk::Failure(DRIFTD_INVALID, std::string("settings: ") + e.what());
  }
  if (out.path.empty() || out.path.front() != '/') {
    throw sdk::Failure(DRIFTD_INVALID, "settings.path: '" + out.path +
                                           "' is no absolute path; expected the path of a terraform.tfstate file");
  }
  return out;
}

}  // namespace driftd::terraform
