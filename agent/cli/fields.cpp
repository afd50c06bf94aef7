// SPDX-License-Identifier: Apache-2.0
#include "cli/fields.hpp"

#include <algorithm>
#include <charconv>

#include "base/escape.hpp"
#include "base/escape_json.hpp"

namespace driftd::cli {

core::Value member(const core::Value& object, std::string_view name) {
  const core::Value* found = object.find(name);
  return found == nullptr ? core::Value() : *found;
}

std::string text(const core::Value& value) {
  if (value.is_null()) return "";
  return value.string() == nullptr ? core::render(value) : *value.string();
}

std::string text(const core::Value& object, std::string_view name) { return text(member(object, name)); }

bool flag(const core::Value& object, std::string_view name) {
  const core::Value found = member(object, name);
  return found.boolean() != nullptr && *found.boolean();
}

std::int64_t number(const core::Value& object, std::string_view name) {
  const core::Value found = member(object, name);
  std::int64_t out = 0;
  if (found.number() == nullptr) return out;
  const std::string& token = found.number()->token;
  std::from_chars(token.data(), token.data() + token.size(), out);
  return out;
}

core::Value::Array list(const core::Value& object, std::string_view name) {
  const core::Value found = member(object, name);
  return found.array() == nullptr ? core::Value::Array{} : *found.array();
}

std::string join(const core::Value::Array& texts) {
  std::string out;
  for (const auto& one : texts) out += (out.empty() ? "" : ", ") + text(one);
  return out;
}

std::string when(const std::string& time) {
  if (time.size() < 19) return time.empty() ? "never" : time;
  return time.substr(0, 10) + " " + time.substr(11, 8);
}

Sides sides_of(const core::Value& change) {
  const auto side = [&](std::string_view name) {
    const core::Value* found = change.find(name);
    return found == nullptr ? std::string("(absent)") : core::render(*found);
  };
  return {side("old"), side("new")};
}

Sides brief(const Sides& whole) {
  constexpr std::size_t kMost = 60, kBefore = 20;
  const auto& [before, now] = whole;
  const std::size_t shorter = std::min(before.size(), now.size());
  const auto differ = std::mismatch(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(shorter), now.begin()).first;
  const auto same = static_cast<std::size_t>(differ - before.begin());
  const bool far = std::max(before.size(), now.size()) > kMost && same > kMost / 2;
  const std::size_t from = far ? front(before, same - kBefore).size() : 0;
  const auto cut = [from](const std::string& text) {
    const std::string_view rest = std::string_view(text).substr(std::min(from, text.size()));
    const std::string_view shown = rest.size() > kMost ? front(rest, kMost - 3) : rest;
    return (from > 0 ? "..." : "") + std::string(shown) + (shown.size() < rest.size() ? "..." : "");
  };
  return {cut(before), cut(now)};
}

std::string json_text(const core::Value& value) { return escaped_json(core::render(value)); }

}  // namespace driftd::cli
