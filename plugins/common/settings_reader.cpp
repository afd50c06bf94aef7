// SPDX-License-Identifier: Apache-2.0
#include "common/settings_reader.hpp"

#include <utility>

#include "driftd/sdk/types.hpp"

namespace driftd::common {
namespace {

using nlohmann::json;

/// Describes a value without quoting it, because it may be a secret that was written in the wrong place.
std::string type_of(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case json::value_t::string:
      return "text";
    case json::value_t::array:
      return "a list";
    case json::value_t::object:
      return "an object";
    case json::value_t::discarded:
      return "text that is not valid JSON";
    default:
      return "a number";
  }
}

/// Returns the next step where `found` stands for a text. Empty if it cannot be made a text.
std::string step_to_text(const json& found) {
  if (found.is_null()) return "add a value or remove the setting";
  return found.is_number() || found.is_boolean() ? "write it in quotes" : "";
}

/// Returns the next step where `found` stands for a number, true or false. Empty if `found` is not in quotes.
std::string step_from_text(const json& found) { return found.is_string() ? "write it without quotes" : ""; }

/// Returns the next step where `found` stands for a list of texts. Empty if it is not a single text.
std::string step_to_list(const json& found) { return found.is_string() ? "write it in brackets: [\"…\"]" : ""; }

/// Returns true if `found` is a whole number of `range`.
bool is_within(const json& found, Range range) {
  if (!found.is_number_integer()) return false;
  if (!found.is_number_unsigned() && found.get<std::int64_t>() < 0) return false;
  const auto number = found.get<std::uint64_t>();
  return number >= range.min && number <= range.max;
}

}  // namespace

void refuse_setting(const std::string& where, const std::string& expected, const std::string& found,
                    const std::string& next_step) {
  throw sdk::Failure(DRIFTD_INVALID, where + ": expected " + expected + (found.empty() ? "" : ", found " + found) +
                                         (next_step.empty() ? "" : "; " + next_step));
}

json parse_settings_json(std::string_view text) {
  json out = json::parse(text, nullptr, false);
  if (!out.is_object()) refuse_setting("settings", "a JSON object", type_of(out));
  return out;
}

SettingsReader::SettingsReader(const json& from, std::string where) : from_(&from), where_(std::move(where)) {
  if (!from.is_object()) refuse_setting(where_, "a JSON object", type_of(from));
}

void SettingsReader::refuse(const std::string& name, const std::string& expected, const std::string& found,
                            const std::string& next_step) const {
  refuse_setting(where_ + "." + name, expected, found, next_step);
}

const json* SettingsReader::find(const char* name) {
  known_.insert(name);
  const auto found = from_->find(name);
  return found == from_->end() ? nullptr : &*found;
}

bool SettingsReader::has(const char* name) { return find(name) != nullptr; }

std::string SettingsReader::text(const char* name, std::string fallback) {
  const json* found = find(name);
  if (found == nullptr) return fallback;
  if (!found->is_string()) refuse(name, "text", type_of(*found), step_to_text(*found));
  return found->get<std::string>();
}

std::string SettingsReader::required_text(const char* name, const std::string& expected) {
  std::string out = text(name);
  if (!out.empty()) return out;
  if (has(name)) refuse(name, expected, "an empty text", "write it between the quotes");
  refuse(name, expected, "nothing", "add it to " + where_);
}

bool SettingsReader::flag(const char* name, bool fallback) {
  const json* found = find(name);
  if (found == nullptr) return fallback;
  if (!found->is_boolean()) refuse(name, "true or false", type_of(*found), step_from_text(*found));
  return found->get<bool>();
}

std::uint64_t SettingsReader::number(const char* name, std::uint64_t fallback, Range range, const std::string& unit) {
  const json* found = find(name);
  if (found == nullptr) return fallback;
  const std::string expected =
      "a whole number" + unit + " from " + std::to_string(range.min) + " to " + std::to_string(range.max);
  if (!found->is_number()) refuse(name, expected, type_of(*found), step_from_text(*found));
  if (!is_within(*found, range)) refuse(name, expected, found->dump(), "choose a number of this range");
  return found->get<std::uint64_t>();
}

std::uint64_t SettingsReader::number(const char* name, std::uint64_t fallback, Range range) {
  return number(name, fallback, range, "");
}

std::chrono::milliseconds SettingsReader::ms(const char* name, std::chrono::milliseconds fallback,
                                             std::chrono::milliseconds max) {
  const auto limit = static_cast<std::uint64_t>(max.count());
  return std::chrono::milliseconds(
      number(name, static_cast<std::uint64_t>(fallback.count()), {1, limit}, " of milliseconds"));
}

std::chrono::seconds SettingsReader::seconds(const char* name, std::chrono::seconds fallback,
                                             std::chrono::seconds max) {
  const auto limit = static_cast<std::uint64_t>(max.count());
  return std::chrono::seconds(number(name, static_cast<std::uint64_t>(fallback.count()), {1, limit}, " of seconds"));
}

std::vector<std::string> SettingsReader::read_texts(const char* name, const json& list) const {
  std::vector<std::string> out;
  for (const auto& one : list) {
    if (!one.is_string()) {
      refuse(std::string(name) + "[" + std::to_string(out.size()) + "]", "text", type_of(one), step_to_text(one));
    }
    out.push_back(one.get<std::string>());
  }
  return out;
}

std::vector<std::string> SettingsReader::texts(const char* name, std::vector<std::string> fallback) {
  const json* found = find(name);
  if (found == nullptr) return fallback;
  if (!found->is_array()) refuse(name, "a list of texts", type_of(*found), step_to_list(*found));
  return read_texts(name, *found);
}

std::vector<std::string> SettingsReader::text_or_texts(const char* name) {
  const json* found = find(name);
  if (found == nullptr) return {};
  if (found->is_string()) return {found->get<std::string>()};
  if (!found->is_array()) refuse(name, "a text or a list of texts", type_of(*found), step_to_text(*found));
  return read_texts(name, *found);
}

std::map<std::string, std::string> SettingsReader::text_map(const char* name) {
  SettingsReader members = object(name);
  std::map<std::string, std::string> out;
  for (const auto& item : members.from_->items()) out[item.key()] = members.text(item.key().c_str());
  return out;
}

SettingsReader SettingsReader::object(const char* name) {
  static const json kNone = json::object();
  const json* found = find(name);
  if (found != nullptr && !found->is_object()) refuse(name, "an object", type_of(*found));
  return SettingsReader(found == nullptr ? kNone : *found, where_ + "." + name);
}

std::vector<SettingsReader> SettingsReader::objects(const char* name) {
  const json* found = find(name);
  if (found == nullptr) return {};
  if (!found->is_array()) refuse(name, "a list of objects", type_of(*found));
  std::vector<SettingsReader> out;
  for (const auto& one : *found) {
    out.emplace_back(one, where_ + "." + name + "[" + std::to_string(out.size()) + "]");
  }
  return out;
}

const json& SettingsReader::raw(const char* name) {
  static const json kNone;
  const json* found = find(name);
  return found == nullptr ? kNone : *found;
}

void SettingsReader::finish() const {
  for (const auto& item : from_->items()) {
    if (known_.contains(item.key())) continue;
    std::string known;
    for (const auto& name : known_) known += (known.empty() ? "" : ", ") + name;
    throw sdk::Failure(DRIFTD_INVALID, where_ + "." + item.key() + ": unknown setting; known are " + known +
                                           "; correct the name or remove it");
  }
}

sdk::Scope read_scope(SettingsReader& from) {
  sdk::Scope out;
  out.include = from.texts("include");
  out.exclude = from.texts("exclude");
  return out;
}

}  // namespace driftd::common
