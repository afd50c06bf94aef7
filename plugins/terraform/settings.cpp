// SPDX-License-Identifier: Apache-2.0
#include "terraform/settings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "driftd/sdk/types.hpp"

namespace driftd::terraform {
namespace {

bool any_match(const std::vector<std::string>& globs, std::string_view text) {
  return std::any_of(globs.begin(), globs.end(), [&](const auto& glob) { return glob_match(glob, text); });
}

}  // namespace

bool glob_match(std::string_view glob, std::string_view text) {
  std::size_t g = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      mark = t;
    } else if (g < glob.size() && glob[g] == text[t]) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

bool Settings::wants(std::string_view kind, std::string_view id) const {
  const std::string name = std::string(kind) + "/" + std::string(id);
  return (include.empty() || any_match(include, name)) && !any_match(exclude, name);
}

Settings parse_settings(std::string_view json) {
  const auto root = nlohmann::json::parse(json, nullptr, false);
  if (!root.is_object()) throw sdk::Failure(DRIFTD_INVALID, "settings: expected a JSON object");
  Settings out;
  try {
    out.path = root.value("path", "");
    out.include = root.value("include", std::vector<std::string>{});
    out.exclude = root.value("exclude", std::vector<std::string>{});
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
