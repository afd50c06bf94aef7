// SPDX-License-Identifier: Apache-2.0
#include "postgres/guc.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

namespace driftd::postgres {
namespace {

struct Unit {
  std::string_view name;
  double factor;  ///< bytes or milliseconds
};
constexpr std::array<Unit, 6> kMemory{{{"B", 1},
                                       {"kB", 1024},
                                       {"MB", 1024.0 * 1024},
                                       {"GB", 1024.0 * 1024 * 1024},
                                       {"TB", 1024.0 * 1024 * 1024 * 1024},
                                       {"8kB", 8192}}};
constexpr std::array<Unit, 6> kTime{
    {{"us", 0.001}, {"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}}};

/// Factor of a unit; also of multiples that other builds use, such as `16kB` and `16MB`.
template <class Table>
std::optional<double> factor(const Table& table, std::string_view name) {
  double count = 1;
  const auto digits = name.find_first_not_of("0123456789");
  if (digits != 0 && digits != std::string_view::npos) {
    count = std::strtod(std::string(name.substr(0, digits)).c_str(), nullptr);
    name = name.substr(digits);
  }
  for (const auto& unit : table) {
    if (unit.name == name) return count * unit.factor;
  }
  return std::nullopt;
}

std::optional<double> any_factor(std::string_view name) {
  const auto memory = factor(kMemory, name);
  return memory ? memory : factor(kTime, name);
}

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

std::optional<bool> truth(std::string_view text) {
  const std::string word = bare(text);
  for (const auto* yes : {"on", "true", "tru", "tr", "t", "yes", "ye", "y", "1"}) {
    if (word == yes) return true;
  }
  for (const auto* no : {"off", "of", "false", "fals", "fal", "fa", "f", "no", "n", "0"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

bool same_number(std::string_view file_text, const Guc& in_force) {
  const std::string text(file_text);
  char* end = nullptr;
  double found = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return false;
  std::string_view unit(end);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  while (unit.ends_with(' ')) unit.remove_suffix(1);
  if (!unit.empty()) {
    const auto given = any_factor(unit);
    const auto base = any_factor(in_force.unit);
    if (!given || !base) return false;
    found *= *given / *base;
  }
  const double now = std::strtod(in_force.setting.c_str(), nullptr);
  if (in_force.vartype == "integer") return std::rint(found) == now;  // the server rounds to its base unit
  return std::fabs(found - now) <= 1e-5 * std::max(std::fabs(now), std::fabs(found));  // it prints six digits
}

}  // namespace

TypedGuc typed(const Guc& guc) {
  if (guc.vartype == "bool") return {"flag", guc.setting == "on" ? "true" : "false"};
  if (guc.vartype != "integer" && guc.vartype != "real") return {"value", nlohmann::json(guc.setting).dump()};
  if (const auto memory = factor(kMemory, guc.unit)) return {"bytes", scaled(guc.setting, *memory)};
  if (const auto time = factor(kTime, guc.unit)) return {"duration", scaled(guc.setting, *time)};
  return {"number", number_text(guc.setting)};
}

bool same_value(std::string_view file_text, const Guc& in_force) {
  if (file_text == in_force.setting) return true;
  if (in_force.vartype == "integer" || in_force.vartype == "real") return same_number(file_text, in_force);
  if (in_force.vartype == "string") return bare(file_text) == bare(in_force.setting);
  const auto asked = truth(file_text);
  return bare(file_text) == bare(in_force.setting) || (asked && asked == truth(in_force.setting));
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
