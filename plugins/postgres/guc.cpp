// SPDX-License-Identifier: Apache-2.0
#include "postgres/guc.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "postgres/guc_types.hpp"

namespace driftd::postgres {
namespace {

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t out = 0;
  const auto end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  if (text.empty() || error != std::errc() || at != end) return std::nullopt;
  return out;
}

/// A number as the server wrote it, or text when it is none in JSON (`Infinity`).
std::string number_text(const std::string& text) {
  const bool number = nlohmann::json::accept(text) && text.find_first_of("-0123456789") == 0;
  return number ? text : nlohmann::json(text).dump();
}

std::string scaled(const std::string& text, double by) {
  const auto number = integer(text);
  if (!number || *number < 0 || by < 1) return number_text(text);
  return std::to_string(*number * static_cast<std::int64_t>(by));
}

std::string bare(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '"') out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return out;
}

bool same_number(std::string_view file_text, const Guc& in_force) {
  const GucType type{in_force.vartype, in_force.unit, {}};
  const auto found = number_in_base_unit(type, file_text), now = number_in_base_unit(type, in_force.setting);
  if (!found || !now) return false;
  if (in_force.vartype == "integer") return *found == *now;
  return std::fabs(*found - *now) <= 1e-5 * std::max(std::fabs(*now), std::fabs(*found));  // it prints six digits
}

}  // namespace

TypedGuc typed(const Guc& guc) {
  if (guc.vartype == "bool") return {"flag", guc.setting == "on" ? "true" : "false"};
  if (guc.vartype != "integer" && guc.vartype != "real") return {"value", nlohmann::json(guc.setting).dump()};
  if (const auto memory = memory_unit(guc.unit)) return {"bytes", scaled(guc.setting, *memory)};
  if (const auto time = time_unit(guc.unit)) return {"duration", scaled(guc.setting, *time)};
  return {"number", number_text(guc.setting)};
}

bool same_value(std::string_view file_text, const Guc& in_force) {
  if (file_text == in_force.setting) return true;
  if (in_force.vartype == "integer" || in_force.vartype == "real") return same_number(file_text, in_force);
  if (in_force.vartype == "string") return bare(file_text) == bare(in_force.setting);
  const auto asked = truth_of(file_text);
  return bare(file_text) == bare(in_force.setting) || (asked && asked == truth_of(in_force.setting));
}

bool secret_guc(std::string_view name) {
  if (name == "password_encryption") return false;
  const std::string low = bare(name);
  for (const auto* word : {"password", "passwd", "passphrase", "secret", "token", "conninfo", "api_key", "apikey",
                           "private_key", "credential", "archive_command", "restore_command"}) {
    if (low.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace driftd::postgres
