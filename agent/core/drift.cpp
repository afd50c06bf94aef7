// SPDX-License-Identifier: Apache-2.0
#include "core/drift.hpp"

#include "base/digest.hpp"

namespace driftd::core {
namespace {

void put(std::string& out, std::string_view part) { out += std::to_string(part.size()) + ":" + std::string(part); }

void put(std::string& out, const std::optional<std::string>& value) {
  out += value ? "+" : "-";  // absent is not the empty text
  if (value) put(out, std::string_view(*value));
}

}  // namespace

std::string digest_of(const std::vector<Change>& changes, Against against) {
  std::string text;
  for (const auto& change : changes) {
    put(text, std::string_view(change.path));
    put(text, change.new_value);
    if (against == Against::expectation) put(text, change.old_value);
  }
  return to_hex(sha256(text));
}

}  // namespace driftd::core
