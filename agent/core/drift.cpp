// SPDX-License-Identifier: Apache-2.0
#include "core/drift.hpp"

#include "base/digest.hpp"

namespace driftd::core {
namespace {

void put_part(std::string& out, std::string_view part) { out += std::to_string(part.size()) + ":" + std::string(part); }

void put_part(std::string& out, const std::optional<std::string>& value) {
  out += value ? "+" : "-";  // absent is not the empty text
  if (value) put_part(out, std::string_view(*value));
}

}  // namespace

std::string digest_of(const std::vector<Change>& changes, Against against) {
  std::string text;
  for (const auto& change : changes) {
    put_part(text, std::string_view(change.path));
    put_part(text, change.new_value);
    if (against == Against::expectation) put_part(text, change.old_value);
  }
  return to_hex(sha256(text));
}

std::string name_of(const Drift& drift) { return "drift " + drift.id + " of " + render(drift.resource); }

}  // namespace driftd::core
