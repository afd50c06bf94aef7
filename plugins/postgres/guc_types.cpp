// SPDX-License-Identifier: Apache-2.0
#include "postgres/guc_types.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>

namespace driftd::postgres {
namespace {

constexpr std::string_view kSpace = " \t\n\r\v\f";

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

struct Unit {
  std::string_view name;
  double size;  ///< in bytes or milliseconds
};
// Each table is in descending order: the server rounds a fraction to a whole number of the next smaller unit.
constexpr std::array<Unit, 5> kMemory{
    {{"TB", 1099511627776.0}, {"GB", 1073741824.0}, {"MB", 1048576.0}, {"kB", 1024.0}, {"B", 1.0}}};
constexpr std::array<Unit, 6> kTime{
    {{"d", 86400000.0}, {"h", 3600000.0}, {"min", 60000.0}, {"s", 1000.0}, {"ms", 1.0}, {"us", 0.001}}};

const Unit* find_unit(std::span<const Unit> table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Unit& unit) { return unit.name == name; });
  return found == table.end() ? nullptr : &*found;
}

/// Size of a base unit, which may be a multiple: `8kB`, `16MB`.
std::optional<double> base_size(std::span<const Unit> table, std::string_view base) {
  const auto digits = std::min(base.find_first_not_of("0123456789"), base.size());
  const double count = digits == 0 ? 1 : std::strtod(std::string(base.substr(0, digits)).c_str(), nullptr);
  const Unit* unit = find_unit(table, base.substr(digits));
  if (unit == nullptr) return std::nullopt;
  return count * unit->size;
}

/// Converts a value in `unit` to the base unit as the server's convert_to_base_unit() does.
std::optional<double> in_base_unit(double value, std::string_view unit, std::string_view base) {
  for (const std::span<const Unit> table : {std::span<const Unit>(kMemory), std::span<const Unit>(kTime)}) {
    const auto base_of_table = base_size(table, base);
    if (!base_of_table) continue;
    const Unit* given = find_unit(table, unit);
    if (given == nullptr) return std::nullopt;
    double out = value * (given->size / *base_of_table);
    const Unit* smaller = given + 1;
    if (smaller == table.data() + table.size()) return out;
    const double step = smaller->size / *base_of_table;
    return std::rint(out / step) * step;
  }
  return std::nullopt;
}

/// A number and the unit behind it, as the server reads them.
struct Quantity {
  double value = 0;
  std::string_view unit;
};

/// A whole number may be decimal, octal (`010`) or hexadecimal; one with a point or an exponent is read as a fraction.
std::optional<Quantity> parse_quantity(const std::string& text, bool whole) {
  Quantity out;
  char* end = nullptr;
  errno = 0;
  if (whole) out.value = static_cast<double>(std::strtoll(text.c_str(), &end, 0));
  if (!whole || *end == '.' || *end == 'e' || *end == 'E' || errno == ERANGE) {
    errno = 0;
    out.value = std::strtod(text.c_str(), &end);
  }
  if (end == text.c_str() || errno == ERANGE || !std::isfinite(out.value)) return std::nullopt;
  out.unit = trimmed(std::string_view(text).substr(static_cast<std::size_t>(end - text.c_str())));
  return out;
}

/// Every enum that has the words on and off also takes true, yes, 1, false, no and 0, which pg_settings does not list.
std::string word_meaning(const GucType& type, std::string_view text) {
  const std::string word = lower(text);
  const auto has = [&](std::string_view one) {
    return std::find(type.words.begin(), type.words.end(), one) != type.words.end();
  };
  if (!has("on") || !has("off") || has(word)) return word;
  if (word == "true" || word == "yes" || word == "1") return "on";
  if (word == "false" || word == "no" || word == "0") return "off";
  return word;
}

struct ListOfNames {
  std::string_view name;
  bool fold;     ///< names without quotes are read in lower case
  bool ordered;  ///< the order of the names counts
};
constexpr std::array<ListOfNames, 14> kLists{{{"search_path", true, true},
                                              {"temp_tablespaces", true, true},
                                              {"datestyle", true, false},
                                              {"log_destination", true, false},
                                              {"wal_consistency_checking", true, false},
                                              {"debug_io_direct", true, false},
                                              {"createrole_self_grant", true, false},
                                              {"restrict_nonsystem_relation_kind", true, false},
                                              {"synchronized_standby_slots", true, false},
                                              {"shared_preload_libraries", false, true},
                                              {"session_preload_libraries", false, true},
                                              {"local_preload_libraries", false, true},
                                              {"unix_socket_directories", false, true},
                                              {"listen_addresses", false, true}}};

/// Takes one name from the front of `rest`, with the white space around it. Empty if it is not a name.
std::optional<std::string> take_name(std::string_view& rest, bool fold) {
  std::string out;
  if (!rest.starts_with('"')) {
    const auto end = std::min(rest.find(','), rest.size());
    const std::string_view name = trimmed(rest.substr(0, end));
    rest.remove_prefix(end);
    const bool plain = !name.empty() && name.find_first_of("\" \t\n\r\v\f") == std::string_view::npos;
    if (!plain) return std::nullopt;
    return fold ? lower(name) : std::string(name);
  }
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] != '"') {
      out += rest[i];
    } else if (i + 1 < rest.size() && rest[i + 1] == '"') {
      out += rest[i++];
    } else {
      rest = trimmed(rest.substr(i + 1));
      return out;
    }
  }
  return std::nullopt;  // the quote has no end
}

std::optional<std::string> list_meaning(const ListOfNames& list, std::string_view text) {
  std::vector<std::string> names;
  std::string_view rest = trimmed(text);
  while (!rest.empty()) {
    auto name = take_name(rest, list.fold);
    if (!name || !(rest.empty() || rest.starts_with(','))) return std::nullopt;
    names.push_back(*std::move(name));
    if (rest.empty()) break;
    rest = trimmed(rest.substr(1));
    if (rest.empty()) return std::nullopt;  // a name must follow the comma
  }
  if (!list.ordered) {
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
  }
  return nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Takes one member name from the front of an attribute path: `a`, `.a` or `["a.b"]`. Empty if there is none.
std::optional<std::string> take_segment(std::string_view& path) {
  if (path.starts_with("[\"")) {
    std::size_t end = 2;
    while (end < path.size() && path[end] != '"') end += path[end] == '\\' ? 2 : 1;
    if (end + 1 >= path.size() || path[end + 1] != ']') return std::nullopt;
    const auto name = nlohmann::json::parse(path.substr(1, end), nullptr, false);
    path.remove_prefix(end + 2);
    return name.is_string() ? std::optional(name.get<std::string>()) : std::nullopt;
  }
  if (path.starts_with('.')) path.remove_prefix(1);
  const auto end = std::min(path.find_first_of(".["), path.size());
  if (end == 0) return std::nullopt;
  std::string out(path.substr(0, end));
  path.remove_prefix(end);
  return out;
}

}  // namespace

std::optional<double> memory_unit(std::string_view unit) { return base_size(kMemory, unit); }
std::optional<double> time_unit(std::string_view unit) { return base_size(kTime, unit); }

std::optional<double> number_in_base_unit(const GucType& type, std::string_view given) {
  constexpr double kExact = 9007199254740992.0;  // beyond 2^53 a double is not exact
  const std::string text(given);
  const bool whole = type.vartype == "integer";
  const auto quantity = parse_quantity(text, whole);
  if (!quantity) return std::nullopt;
  double out = quantity->value;
  if (!quantity->unit.empty()) {
    const auto converted = in_base_unit(out, quantity->unit, type.unit);
    if (!converted) return std::nullopt;
    out = *converted;
  }
  if (whole) out = std::rint(out);
  if (std::fabs(out) > kExact) return std::nullopt;
  return out == 0 ? 0 : out;  // -0 is 0
}

/// The server takes every prefix of a word that is not ambiguous, in any case.
std::optional<bool> truth_of(std::string_view text) {
  const std::string word = lower(text);
  const auto begins = [&](std::string_view whole, std::size_t least) {
    return word.size() >= least && whole.starts_with(word);
  };
  if (begins("true", 1) || begins("yes", 1) || begins("on", 2) || word == "1") return true;
  if (begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0") return false;
  return std::nullopt;
}

std::optional<std::string> meaning(std::string_view name, const GucType& type, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  if (type.vartype == "bool") {
    const auto truth = truth_of(text);
    return truth ? std::optional<std::string>(*truth ? "on" : "off") : std::nullopt;
  }
  if (type.vartype == "integer" || type.vartype == "real") {
    const auto number = number_in_base_unit(type, text);
    return number ? std::optional(nlohmann::json(*number).dump()) : std::nullopt;
  }
  if (type.vartype == "enum") return word_meaning(type, text);
  const auto list = std::find_if(kLists.begin(), kLists.end(), [&](const auto& one) { return one.name == name; });
  return list == kLists.end() ? std::nullopt : list_meaning(*list, text);
}

GucTypes::GucTypes(const Rows& rows) {
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const Fields row(rows, i);
    GucType type{row.text("vartype"), row.text("unit"), {}};
    const auto words = nlohmann::json::parse(row.text("words"), nullptr, false);
    for (const auto& word : words.is_array() ? words : nlohmann::json::array()) {
      if (word.is_string()) type.words.push_back(lower(word.get<std::string>()));
    }
    types_.insert_or_assign(lower(row.text("name")), std::move(type));
  }
}

bool GucTypes::same(std::string_view name, std::string_view before, std::string_view after) const {
  if (before == after) return true;
  const std::string known = lower(name);
  if (known.find('.') != std::string::npos) return false;
  const auto type = types_.find(known);
  if (type == types_.end()) return false;
  const auto left = meaning(known, type->second, before), right = meaning(known, type->second, after);
  return left && right && *left == *right;
}

std::string guc_types_query() {
  return "SELECT name, vartype, unit, array_to_json(enumvals)::text AS words FROM pg_settings";
}

std::string guc_of_attribute(std::string_view kind, std::string_view id, std::string_view path) {
  if (kind == "setting") return path == "value" ? std::string(id) : std::string();
  if (kind == "file_setting") {
    const auto colon = id.rfind(':');
    if (path != "setting" || colon == std::string_view::npos) return {};
    const std::string_view name = id.substr(colon + 1);
    return std::string(name.substr(0, name.find('#')));
  }
  const bool of_role = kind == "role";
  if (!of_role && kind != "database") return {};
  const auto first = take_segment(path);
  const bool in_database = of_role && first == "database_settings";
  if (in_database && !take_segment(path)) return {};
  if (!in_database && first != "settings") return {};
  const auto name = take_segment(path);
  return name && path.empty() ? *name : std::string();
}

}  // namespace driftd::postgres
