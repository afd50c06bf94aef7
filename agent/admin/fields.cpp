// SPDX-License-Identifier: Apache-2.0
#include "admin/fields.hpp"

#include <charconv>
#include <optional>

#include "base/instant.hpp"

namespace driftd::admin {
namespace {

/// Parses a whole number. Empty if the text is anything else.
std::optional<std::int64_t> parse_whole(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, value);
  return code == std::errc{} && at == end ? std::optional(value) : std::nullopt;
}

}  // namespace

Result<Fields> Fields::parse(const std::string& body) {
  Fields out;
  if (body.empty()) return out;
  auto value = core::parse(body);
  if (!value) return fail(Code::invalid, "the request body is not valid JSON: " + value.error().message);
  if (value->object() == nullptr) return fail(Code::invalid, "the request body must be a JSON object");
  out.members_ = std::move(*value->object());
  return out;
}

const core::Value* Fields::take(const std::string& name) {
  asked_[name] = true;
  const auto found = members_.find(name);
  return found == members_.end() || found->second.is_null() ? nullptr : &found->second;
}

void Fields::wrong(const std::string& name, const char* expected) {
  if (mistake_.empty()) mistake_ = "'" + name + "' must be " + expected;
}

std::string Fields::text(const std::string& name) {
  const auto* value = take(name);
  if (value == nullptr) return "";
  if (value->string() != nullptr) return *value->string();
  wrong(name, "a text");
  return "";
}

std::string Fields::reason() {
  constexpr std::size_t kMaxReason = 4096;  // bytes
  std::string out = text("reason");
  if (out.size() > kMaxReason && mistake_.empty()) {
    mistake_ =
        "'reason' has " + std::to_string(out.size()) + " bytes; at most " + std::to_string(kMaxReason) + " are kept";
  }
  return out;
}

std::int64_t Fields::number(const std::string& name, std::int64_t fallback) {
  const auto* value = take(name);
  if (value == nullptr) return fallback;
  const auto read = value->number() == nullptr ? std::nullopt : parse_whole(value->number()->token);
  if (!read) wrong(name, "a whole number");
  return read.value_or(fallback);
}

bool Fields::flag(const std::string& name) {
  const auto* value = take(name);
  if (value == nullptr) return false;
  if (value->boolean() != nullptr) return *value->boolean();
  wrong(name, "true or false");
  return false;
}

std::vector<std::int64_t> Fields::numbers(const std::string& name) {
  std::vector<std::int64_t> out;
  const auto* value = take(name);
  if (value == nullptr) return out;
  if (value->array() == nullptr) wrong(name, "a list of whole numbers");
  for (const auto& item : value->array() == nullptr ? core::Value::Array{} : *value->array()) {
    const auto read = item.number() == nullptr ? std::nullopt : parse_whole(item.number()->token);
    if (!read) wrong(name, "a list of whole numbers");
    if (read) out.push_back(*read);
  }
  return out;
}

std::vector<std::string> Fields::texts(const std::string& name) {
  std::vector<std::string> out;
  const auto* value = take(name);
  if (value == nullptr) return out;
  if (value->array() == nullptr) wrong(name, "a list of texts");
  for (const auto& item : value->array() == nullptr ? core::Value::Array{} : *value->array()) {
    if (item.string() == nullptr) wrong(name, "a list of texts");
    if (item.string() != nullptr) out.push_back(*item.string());
  }
  return out;
}

Status Fields::check() {
  for (const auto& [name, value] : members_) {
    if (!asked_.contains(name) && mistake_.empty()) mistake_ = "unknown member '" + name + "'";
  }
  if (!mistake_.empty()) return fail(Code::invalid, "request body: " + mistake_);
  return {};
}

Result<std::int64_t> parse_number(const std::string& what, const std::string& text, std::int64_t fallback,
                                  std::int64_t min, std::int64_t max) {
  if (text.empty()) return fallback;
  const auto value = parse_whole(text);
  if (value && *value >= min && *value <= max) return *value;
  return fail(Code::invalid, "'" + what + "' must be a whole number from " + std::to_string(min) + " to " +
                                 std::to_string(max) + "; found '" + text + "'");
}

Result<Nanos> parse_time(const std::string& text) {
  if (const auto time = text.ends_with('Z') ? parse_nanos(text) : std::nullopt) return *time;
  return fail(Code::invalid, "'" + text + "' is not a valid time; expected UTC such as 2026-11-21T03:39:16Z");
}

Result<core::ResourceId> parse_resource(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size()) {
    return fail(Code::invalid, "'" + text + "' is not a valid resource; expected KIND/ID, such as role/app");
  }
  return core::ResourceId{text.substr(0, slash), text.substr(slash + 1)};
}

}  // namespace driftd::admin
