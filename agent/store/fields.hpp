// SPDX-License-Identifier: Apache-2.0
// Columns with several values, as JSON text. Exact for UTF-8; other bytes become U+FFFD. Parsing returns `corrupt` for
// any other text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/drift.hpp"

namespace driftd::store {

tl::unexpected<Error> corrupt_column(const std::string& expected);  ///< `corrupt`, with what to do

std::string to_text(const std::map<std::string, std::string>& values);
std::string to_text(const std::vector<std::string>& values);
std::string to_text(const std::vector<core::Change>& values);
std::string to_text(const std::vector<core::Approval>& values);         ///< empty if there are none
std::string to_text(const std::optional<core::FormerBaseline>& value);  ///< empty if it is absent

Result<std::map<std::string, std::string>> parse_strings(const std::string& text);
/// Of counts, as the store's own SQL writes them.
Result<std::map<std::string, std::int64_t>> parse_counts(const std::string& text);
Result<std::vector<std::string>> parse_list(const std::string& text);
Result<std::vector<core::Change>> parse_changes(const std::string& text);
Result<std::vector<core::Approval>> parse_approvals(const std::string& text);
Result<std::optional<core::FormerBaseline>> parse_former(const std::string& text);

}  // namespace driftd::store
