// SPDX-License-Identifier: Apache-2.0
// Numbers and quantities: exact decimals as text, units as exact rationals. No double anywhere.
#include <algorithm>
#include <array>
#include <boost/multiprecision/cpp_int.hpp>
#include <charconv>
#include <optional>

#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

using Integer = boost::multiprecision::cpp_int;
using Rational = boost::multiprecision::cpp_rational;

constexpr std::int64_t kMaxExponent = 1'000'000'000;  ///< of a decimal number
constexpr std::int64_t kMaxUnitExponent = 4'096;      ///< of a quantity, which is computed and not only rewritten
constexpr std::size_t kMaxPlainDigits = 40;           ///< a longer number is written with an exponent
constexpr int kMaxTerms = 32;                         ///< terms of `1h30m…`; each may cost a division of 4,096 digits
constexpr std::size_t kMaxBaseDigits = 18;            ///< digits of the count before a schema's base unit

/// sign × digits × 10^exponent; digits without zeros at either end, empty for zero.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;
};

std::string_view take_digits(std::string_view& rest) {
  std::size_t n = 0;
  while (n < rest.size() && rest[n] >= '0' && rest[n] <= '9') ++n;
  const auto out = rest.substr(0, n);
  rest.remove_prefix(n);
  return out;
}

bool take(std::string_view& rest, char c) {
  if (rest.empty() || rest.front() != c) return false;
  rest.remove_prefix(1);
  return true;
}

/// Parses an exponent (`e-3`) at the front of `rest`, only if digits follow: `1E` is one exa, not an exponent.
std::optional<std::int64_t> take_exponent(std::string_view& rest) {
  std::string_view look = rest;
  if (!take(look, 'e') && !take(look, 'E')) return 0;
  const bool negative = take(look, '-');
  if (!negative) take(look, '+');
  const auto digits = take_digits(look);
  if (digits.empty()) return 0;
  std::int64_t value = 0;
  const auto end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, value).ec != std::errc() || value > kMaxExponent) return std::nullopt;
  rest = look;
  return negative ? -value : value;
}

/// Parses a decimal at the front of `rest` and removes it; what follows (a unit) stays.
std::optional<Decimal> take_decimal(std::string_view& rest) {
  Decimal out;
  out.negative = take(rest, '-');
  if (!out.negative) take(rest, '+');
  out.digits = take_digits(rest);
  if (take(rest, '.')) {
    const auto fraction = take_digits(rest);
    out.digits += fraction;
    out.exponent = -static_cast<std::int64_t>(fraction.size());
  }
  if (out.digits.empty()) return std::nullopt;
  const auto exponent = take_exponent(rest);
  if (!exponent) return std::nullopt;
  out.exponent += *exponent;
  out.digits.erase(0, std::min(out.digits.find_first_not_of('0'), out.digits.size()));
  while (!out.digits.empty() && out.digits.back() == '0') {
    out.digits.pop_back();
    ++out.exponent;
  }
  if (out.digits.empty()) out = Decimal{};
  return out;
}

std::optional<Decimal> parse_decimal(std::string_view text) {
  text = strip(text);
  auto out = take_decimal(text);
  return text.empty() ? out : std::nullopt;
}

std::string render(const Decimal& d) {
  if (d.digits.empty()) return "0";
  const std::string sign = d.negative ? "-" : "";
  const auto size = static_cast<std::int64_t>(d.digits.size());
  const std::int64_t point = size + d.exponent;  // digits before the decimal point
  const auto max_plain = static_cast<std::int64_t>(kMaxPlainDigits);
  if (d.exponent >= 0 && point <= max_plain)
    return sign + d.digits + std::string(static_cast<std::size_t>(d.exponent), '0');
  if (d.exponent < 0 && point > 0) {
    return sign + d.digits.substr(0, static_cast<std::size_t>(point)) + "." +
           d.digits.substr(static_cast<std::size_t>(point));
  }
  if (d.exponent < 0 && point > -max_plain)
    return sign + "0." + std::string(static_cast<std::size_t>(-point), '0') + d.digits;
  return sign + d.digits + "e" + std::to_string(d.exponent);
}

std::optional<Rational> rational(const Decimal& d) {
  if (d.exponent > kMaxUnitExponent || d.exponent < -kMaxUnitExponent || d.digits.size() > kMaxUnitExponent)
    return std::nullopt;
  Integer n = d.digits.empty() ? Integer(0) : Integer(d.digits);
  if (d.negative) n = -n;
  const Integer scale = boost::multiprecision::pow(Integer(10), static_cast<unsigned>(std::abs(d.exponent)));
  return d.exponent >= 0 ? Rational(n * scale) : Rational(n, scale);
}

/// Renders `n`, or the JSON string `"n/d"` if it is not a whole number.
std::string render(const Rational& r) {
  const Integer n = numerator(r), d = denominator(r);
  return d == 1 ? n.str() : "\"" + n.str() + "/" + d.str() + "\"";
}

Integer power(unsigned base, unsigned exponent) { return boost::multiprecision::pow(Integer(base), exponent); }

/// Rounds to the nearest whole number, halves to even (C's rint, which the Postgres server uses).
Integer round_even(const Rational& r) {
  const Integer n = numerator(r), d = denominator(r);
  Integer quotient = n / d, rest = n % d;
  if (rest < 0) {
    rest += d;
    quotient -= 1;
  }
  const Integer twice = rest * 2;
  if (twice > d || (twice == d && quotient % 2 != 0)) quotient += 1;
  return quotient;
}

struct Unit {
  std::string_view name;
  std::int64_t factor;
};
constexpr std::int64_t kKi = 1024, kMi = kKi * 1024, kGi = kMi * 1024, kTi = kGi * 1024;
constexpr std::int64_t kMicro = 1'000, kMilli = 1'000'000, kSecond = 1'000'000'000, kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute, kDay = 24 * kHour;

// Each table is in ascending order: Postgres rounds a fraction to a whole number of the next smaller unit.
constexpr std::array<Unit, 5> kPostgresBytes = {{{"B", 1}, {"kB", kKi}, {"MB", kMi}, {"GB", kGi}, {"TB", kTi}}};
constexpr std::array<Unit, 6> kPostgresTime = {
    {{"us", kMicro}, {"ms", kMilli}, {"s", kSecond}, {"min", kMinute}, {"h", kHour}, {"d", kDay}}};
constexpr std::array<Unit, 7> kRedisBytes = {  // compared without case, as the server does
    {{"b", 1}, {"k", 1'000}, {"kb", kKi}, {"m", 1'000'000}, {"mb", kMi}, {"g", 1'000'000'000}, {"gb", kGi}}};
constexpr std::array<Unit, 13> kIecBytes = {{{"b", 1},
                                             {"k", kKi},
                                             {"kb", kKi},
                                             {"kib", kKi},
                                             {"m", kMi},
                                             {"mb", kMi},
                                             {"mib", kMi},
                                             {"g", kGi},
                                             {"gb", kGi},
                                             {"gib", kGi},
                                             {"t", kTi},
                                             {"tb", kTi},
                                             {"tib", kTi}}};
constexpr std::array<Unit, 13> kSiBytes = {{{"b", 1},
                                            {"k", 1'000},
                                            {"kb", 1'000},
                                            {"kib", kKi},
                                            {"m", 1'000'000},
                                            {"mb", 1'000'000},
                                            {"mib", kMi},
                                            {"g", 1'000'000'000},
                                            {"gb", 1'000'000'000},
                                            {"gib", kGi},
                                            {"t", 1'000'000'000'000},
                                            {"tb", 1'000'000'000'000},
                                            {"tib", kTi}}};
constexpr std::array<Unit, 22> kTime = {
    {{"ns", 1},        {"us", kMicro},    {"µs", kMicro},      {"ms", kMilli},       {"s", kSecond},
     {"sec", kSecond}, {"secs", kSecond}, {"second", kSecond}, {"seconds", kSecond}, {"m", kMinute},
     {"min", kMinute}, {"mins", kMinute}, {"minute", kMinute}, {"minutes", kMinute}, {"h", kHour},
     {"hr", kHour},    {"hour", kHour},   {"hours", kHour},    {"d", kDay},          {"day", kDay},
     {"days", kDay},   {"w", 7 * kDay}}};

template <std::size_t N>
const Unit* find_unit(const std::array<Unit, N>& table, std::string_view name) {
  const auto it = std::find_if(table.begin(), table.end(), [&](const Unit& u) { return u.name == name; });
  return it == table.end() ? nullptr : &*it;
}

/// The `unit` of a schema rule, split at colons: `postgres:8kB:real`.
struct UnitRule {
  std::string_view table, base, flag;
};
UnitRule parse_unit_rule(std::string_view unit) {
  UnitRule out;
  std::array<std::string_view*, 3> parts = {&out.table, &out.base, &out.flag};
  for (auto* part : parts) {
    const auto colon = unit.find(':');
    *part = unit.substr(0, colon);
    unit = colon == std::string_view::npos ? std::string_view() : unit.substr(colon + 1);
  }
  return out;
}

/// Parses `8kB`, an optional count before a unit's name, as a number of the smallest unit.
template <std::size_t N>
std::optional<Rational> base_factor(const std::array<Unit, N>& table, std::string_view base) {
  Rational count = 1;
  if (!base.empty() && base.front() >= '0' && base.front() <= '9') {
    const auto digits = take_digits(base);
    if (digits.size() > kMaxBaseDigits) return std::nullopt;
    count = Rational(Integer(std::string(digits)));
    if (count == 0) return std::nullopt;  // a base unit of zero is not valid
  }
  const Unit* unit = find_unit(table, base);
  if (unit == nullptr) return std::nullopt;
  return Rational(count * Rational(unit->factor));
}

/// Parses a setting as PostgreSQL's guc.c does: a bare number is in base units. A fraction with a unit is rounded to
/// the next smaller unit, and then everything to whole base units, unless the setting is real.
template <std::size_t N>
Result<std::string> postgres(std::string_view text, const std::array<Unit, N>& table, std::string_view base,
                             bool real) {
  const auto factor = base_factor(table, base);
  if (!factor) return fail(Code::invalid, "no Postgres base unit '" + std::string(base) + "'");
  std::string_view rest = strip(text);
  const auto number = take_decimal(rest);
  const auto value = number ? rational(*number) : std::nullopt;
  rest = strip(rest);
  if (!value) return type_mismatch("a Postgres quantity", text);
  Rational smallest = *value * *factor;
  if (!rest.empty()) {
    const Unit* unit = find_unit(table, rest);
    if (unit == nullptr) return type_mismatch("a Postgres quantity", text);
    smallest = *value * Rational(unit->factor);
    if (denominator(*value) != 1 && unit != table.data()) {
      const Rational below((unit - 1)->factor);
      smallest = Rational(round_even(Rational(smallest / below))) * below;
    }
  }
  if (real) return render(smallest);
  return render(Rational(Rational(round_even(Rational(smallest / *factor))) * *factor));
}

/// Parses a number with a suffix of `table`. A number without a suffix is in units of `bare`.
template <std::size_t N>
Result<std::string> suffixed(std::string_view text, const std::array<Unit, N>& table, const Rational& bare) {
  std::string_view rest = strip(text);
  const auto number = take_decimal(rest);
  const auto value = number ? rational(*number) : std::nullopt;
  if (!value) return type_mismatch("a quantity", text);
  const std::string suffix = lower(strip(rest));
  if (suffix.empty()) return render(Rational(*value * bare));
  const Unit* unit = find_unit(table, suffix);
  if (unit == nullptr) return type_mismatch("a quantity", text);
  return render(Rational(*value * Rational(unit->factor)));
}

/// Parses `1h30m`, `-2s`: one or more numbers, each with its unit.
Result<std::string> compound(std::string_view text) {
  std::string_view rest = strip(text);
  const bool negative = take(rest, '-');
  Rational sum = 0;
  if (rest.empty()) return type_mismatch("a duration", text);
  for (int terms = 0; !rest.empty(); ++terms) {
    if (terms == kMaxTerms) return type_mismatch("a duration", text);
    const auto number = rest.front() == '-' ? std::nullopt : take_decimal(rest);
    const auto value = number ? rational(*number) : std::nullopt;
    if (!value) return type_mismatch("a duration", text);
    rest = strip(rest);
    std::size_t n = 0;
    while (n < rest.size() && !(rest[n] >= '0' && rest[n] <= '9') && rest[n] != '.' && rest[n] != ' ') ++n;
    const Unit* unit = find_unit(kTime, lower(rest.substr(0, n)));
    if (unit == nullptr) return type_mismatch("a duration", text);
    sum += *value * Rational(unit->factor);
    rest = strip(rest.substr(n));
  }
  return render(Rational(negative ? Rational(-sum) : sum));
}

/// Parses ISO 8601 `P1DT2H`. Years and months have no fixed length: they are refused, or with `calendar` counted apart.
Result<std::string> iso_duration(std::string_view text, bool calendar) {
  static constexpr std::array<Unit, 2> kDates = {{{"W", 7 * kDay}, {"D", kDay}}};
  static constexpr std::array<Unit, 3> kTimes = {{{"H", kHour}, {"M", kMinute}, {"S", kSecond}}};
  std::string_view rest = strip(text);
  const bool negative = take(rest, '-');
  if (!take(rest, 'P') || rest.empty() || rest == "T") return type_mismatch("an ISO 8601 duration", text);
  Rational sum = 0, months = 0;
  bool in_time = false;
  for (int terms = 0; !rest.empty(); ++terms) {
    if (terms == kMaxTerms) return type_mismatch("an ISO 8601 duration", text);
    if (!in_time && take(rest, 'T')) in_time = true;
    const auto number = rest.empty() || rest.front() == '-' || rest.front() == '+' ? std::nullopt : take_decimal(rest);
    const auto value = number ? rational(*number) : std::nullopt;
    const auto name = rest.substr(0, 1);
    const bool of_calendar = calendar && !in_time && (name == "Y" || name == "M");
    const Unit* unit = in_time ? find_unit(kTimes, name) : find_unit(kDates, name);
    if (value && of_calendar) {
      months += *value * Rational(name == "Y" ? 12 : 1);
      rest.remove_prefix(1);
      continue;
    }
    if (!value || unit == nullptr)
      return type_mismatch("an ISO 8601 duration of weeks, days, hours, minutes, seconds", text);
    sum += *value * Rational(unit->factor);
    rest.remove_prefix(1);
  }
  if (months != 0) {
    if (negative) months = -months, sum = -sum;
    return core::render(Value(months.str() + " months, " + sum.str() + " ns"));
  }
  return render(Rational(negative ? Rational(-sum) : sum));
}

std::optional<Rational> kubernetes_factor(std::string_view suffix) {
  static constexpr std::string_view kBig = "kMGTPE", kBinary = "KMGTPE", kSmall = "mun";
  if (suffix.empty()) return Rational(1);
  if (suffix.size() == 2 && suffix[1] == 'i') {
    const auto at = kBinary.find(suffix[0]);
    if (at == std::string_view::npos) return std::nullopt;
    return Rational(power(1024, static_cast<unsigned>(at) + 1));
  }
  if (suffix.size() != 1) return std::nullopt;
  if (const auto at = kBig.find(suffix[0]); at != std::string_view::npos)
    return Rational(power(1000, static_cast<unsigned>(at) + 1));
  if (const auto at = kSmall.find(suffix[0]); at != std::string_view::npos) {
    return Rational(Integer(1), power(1000, static_cast<unsigned>(at) + 1));
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> decimal(std::string_view text) {
  const auto number = parse_decimal(text);
  if (!number) return type_mismatch("a number", text);
  return render(*number);
}

Result<std::string> integer(std::string_view text) {
  const auto number = parse_decimal(text);
  if (!number || number->exponent < 0) return type_mismatch("an integer", text);
  return render(*number);
}

Result<std::string> percent(std::string_view text, std::string_view unit) {
  std::string_view rest = strip(text);
  auto number = take_decimal(rest);
  rest = strip(rest);
  if (!number || (!rest.empty() && rest != "%")) return type_mismatch("a percentage", text);
  if (rest.empty() && unit == "ratio" && !number->digits.empty()) number->exponent += 2;
  return render(*number);
}

Result<std::string> quantity(std::string_view text) {
  std::string_view rest = strip(text);
  const auto number = take_decimal(rest);
  const auto value = number ? rational(*number) : std::nullopt;
  const auto factor = kubernetes_factor(rest);
  if (!value || !factor) return type_mismatch("a Kubernetes quantity", text);
  return render(Rational(*value * *factor));
}

Result<std::string> bytes(std::string_view text, std::string_view unit) {
  const auto name = parse_unit_rule(unit);
  if (name.table == "kubernetes") return quantity(text);
  if (name.table == "postgres")
    return postgres(text, kPostgresBytes, name.base.empty() ? "B" : name.base, name.flag == "real");
  if (name.table == "redis") return suffixed(text, kRedisBytes, 1);
  if (name.table == "si") return suffixed(text, kSiBytes, 1);
  if (name.table.empty() || name.table == "iec" || name.table == "kafka") return suffixed(text, kIecBytes, 1);
  const auto bare = base_factor(kIecBytes, lower(name.table));  // the unit is that of a bare number: `kb`
  if (!bare) return fail(Code::invalid, "no unit table '" + std::string(unit) + "' of bytes");
  return suffixed(text, kIecBytes, *bare);
}

Result<std::string> duration(std::string_view text, std::string_view unit, bool calendar) {
  const auto name = parse_unit_rule(unit);
  const std::string of_weeks = calendar ? short_weeks(text) : std::string();
  const auto stripped = strip(calendar ? std::string_view(of_weeks) : text);
  if (name.table == "postgres")
    return postgres(text, kPostgresTime, name.base.empty() ? "ms" : name.base, name.flag == "real");
  if (stripped.starts_with("P") || stripped.starts_with("-P")) return iso_duration(stripped, calendar);
  const auto number = parse_decimal(stripped);
  if (!number) return compound(stripped);
  const bool is_table = name.table == "redis" || name.table == "kafka" || name.table == "iso8601";
  const auto bare = base_factor(kTime, is_table ? name.base : name.table);
  const auto value = rational(*number);
  if (!value) return type_mismatch("a duration", text);
  if (!bare && *value == 0) return std::string("0");
  if (!bare) return fail(Code::invalid, "the duration '" + std::string(text) + "' has no unit and the rule names none");
  return render(Rational(*value * *bare));
}

}  // namespace driftd::core::types
