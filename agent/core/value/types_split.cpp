// SPDX-License-Identifier: Apache-2.0
// Texts that are lists of their parts.
#include <algorithm>
#include <iterator>

#include "core/value/types.hpp"

namespace driftd::core {
namespace {

/// Returns the characters of a UTF-8 text, without white space.
Result<Value::Array> characters(std::string_view text) {
  Value::Array out;
  for (std::size_t at = 0; at < text.size();) {
    if (out.size() > types::kMaxElements)
      return types::too_large("more than " + std::to_string(types::kMaxElements) + " characters");
    std::size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) ++end;
    const auto one = text.substr(at, end - at);
    if (!types::strip(one).empty()) out.emplace_back(std::string(one));
    at = end;
  }
  return out;
}

}  // namespace

Result<Value::Array> split(std::string_view text, std::string_view separator) {
  if (separator.empty()) return characters(text);
  Value::Array out;
  for (std::size_t start = 0; start <= text.size();) {
    if (out.size() > types::kMaxElements)
      return types::too_large("more than " + std::to_string(types::kMaxElements) + " parts");
    const auto end = std::min(text.find(separator, start), text.size());
    const auto part = types::strip(text.substr(start, end - start));
    if (!part.empty()) out.emplace_back(std::string(part));
    start = end + separator.size();
  }
  return out;
}

Result<Value::Array> parts_of_elements(const Value::Array& elements, std::string_view separator) {
  Value::Array out;
  for (const auto& element : elements) {
    if (element.string() == nullptr && element.array() == nullptr) out.push_back(element);
    DRIFTD_TRY(Value::Array parts, element.string() != nullptr  ? split(*element.string(), separator)
                                   : element.array() != nullptr ? parts_of_elements(*element.array(), separator)
                                                                : Result<Value::Array>(Value::Array{}));
    std::move(parts.begin(), parts.end(), std::back_inserter(out));
    if (out.size() > types::kMaxElements)
      return types::too_large("more than " + std::to_string(types::kMaxElements) + " parts");
  }
  return out;
}

}  // namespace driftd::core
