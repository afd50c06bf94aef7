// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace driftd::k8s {

/// A document of a group is not read above this: the largest of well-known projects have about 4 MiB.
inline constexpr std::size_t kMaxOpenApi = 8u << 20;

/// Parses an OpenAPI v3 document of the API server without what says nothing about lists (paths, descriptions, enums).
/// Pure. Throws CORRUPT if it is not one, BUDGET if it nests or holds too much; the text says so.
nlohmann::json parse_openapi(std::string_view text);

/// A kind in the API: `{"apps", "v1", "Deployment"}`.
struct ApiKind {
  std::string group, version, kind;
};
/// Returns the name of the type of a kind in a parsed document. Empty if the document does not have that kind.
std::string type_name(const nlohmann::json& document, const ApiKind& kind);
/// Returns `types` of the table of ListTypes for these types of the document and what they refer to. Pure.
nlohmann::json list_types_of(const nlohmann::json& document, const std::vector<std::string>& types);

}  // namespace driftd::k8s
