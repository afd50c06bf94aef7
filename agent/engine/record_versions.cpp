// SPDX-License-Identifier: Apache-2.0
#include "engine/record_versions.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace driftd::engine {
namespace {

constexpr const char* kVersionsNote = "versions_since";

/// Returns the digits without leading zeros, or empty if it is not a number.
std::string_view number_of(std::string_view version) {
  const bool digits = std::all_of(version.begin(), version.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || version.empty()) return {};
  const auto first = version.find_first_not_of('0');
  return first == std::string_view::npos ? version.substr(version.size() - 1) : version.substr(first);
}

}  // namespace

bool went_back(const core::StoredResource& row, const core::Observation& seen) {
  const std::string_view before = number_of(row.version), now = number_of(seen.version);
  if (before.empty() || now.empty() || row.observed_external_name != seen.external_name) return false;
  return now.size() != before.size() ? now.size() < before.size() : now < before;
}

void distrust_versions(core::BackendRow& row, Nanos since) {
  row.notes[kVersionsNote] = std::to_string(std::max(since, versions_since(row)));
}

Nanos versions_since(const core::BackendRow& row) {
  Nanos out = 0;
  const auto found = row.notes.find(kVersionsNote);
  if (found != row.notes.end())
    (void)std::from_chars(found->second.data(), found->second.data() + found->second.size(), out);
  return out;
}

}  // namespace driftd::engine
