// SPDX-License-Identifier: Apache-2.0
#include "core/drift.hpp"

#include "base/digest.hpp"

namespace driftd::core {
namespace {

void put(std::string& out, std::string_view part) { out += std::to_string(part.size()) + ":" + std::string(part); }

}  // namespace

std::string digest_of(const std::vector<Change>& changes) {
  std::string text;
  for (const auto& change : changes) {
    put(text, change.path);
    text += change.new_value ? "+" : "-";  // absent is not the empty text
    if (change.new_value) put(text, *change.new_value);
  }
  return to_hex(sha256(text));
}

}  // namespace driftd::core
