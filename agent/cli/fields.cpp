// SPDX-License-Identifier: Apache-2.0
#include "cli/fields.hpp"

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

bool is_cut(const core::Value& shown, std::string_view name) {
  for (const auto& one : list(shown, "cut")) {
    if (one.string() != nullptr && *one.string() == name) return true;
  }
  return false;
}

Sides read_sides(const core::Value& change) {
  const auto side = [&](std::string_view name) {
    const core::Value* found = change.find(name);
    if (found == nullptr) return std::string("(absent)");
    return is_cut(change, name) ? text(*found) : core::render(*found);
  };
  return {side("old"), side("new")};
}

Sides shorten(const Sides& whole) {
  auto [before, now] = around_difference(whole.before, whole.now, 60);
  return {std::move(before), std::move(now)};
}

std::string json_text(const core::Value& value) { return escaped_json(core::render(value)); }

}  // namespace driftd::cli
