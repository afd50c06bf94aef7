// SPDX-License-Identifier: Apache-2.0
// Attribute paths as the host writes them, for providers that put values back: `a.b[0].c`, `config["a.b"]`, `[name=x]`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace driftd::common {

/// One step of a path.
struct PathStep {
  enum class Kind { member, index, selector } kind = Kind::member;
  std::string name;                                         ///< member: its name
  std::size_t at = 0;                                       ///< index: of the element
  std::vector<std::pair<std::string, std::string>> keys{};  ///< selector: (member of the element, its text)
};
using AttributePath = std::vector<PathStep>;

/// Throws INVALID if the text is not a path.
AttributePath parse_attribute_path(std::string_view text);

/// Returns the index of the element that a step names, or the size of the list if there is none.
std::size_t element_index(const nlohmann::json& list, const PathStep& step);

/// Returns the value at the path; null if there is none. A value that is null itself is also returned.
const nlohmann::json* find_at(const nlohmann::json& body, const AttributePath& path);

/// Sets the value at the path, or takes it away if it is null. Creates objects on the way; an element that a selector
/// names and that is not there is added at the end. Throws INVALID if the path leads through a scalar.
void assign_at(nlohmann::json& body, const AttributePath& path, const nlohmann::json& value);

/// Parses the value of a change; empty, which means that it is absent, becomes null. Throws INVALID if it is not JSON.
nlohmann::json parse_change_value(const std::string& text);

/// Returns true if the value at the path equals `wanted`; null also means that there is none.
bool holds_at(const nlohmann::json& body, const AttributePath& path, const nlohmann::json& wanted);

}  // namespace driftd::common
