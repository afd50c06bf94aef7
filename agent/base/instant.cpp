// SPDX-License-Identifier: Apache-2.0
#include "base/instant.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace driftd {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Parses exactly `width` digits and removes them from the front. Empty if there are fewer.
std::optional<int> take_number(std::string_view& rest, std::size_t width) {
  if (rest.size() < width || !std::all_of(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(width), is_digit))
    return std::nullopt;
  int out = 0;
  std::from_chars(rest.data(), rest.data() + width, out);
  rest.remove_prefix(width);
  return out;
}

/// Removes the first character if it is one of `any_of`. Returns false if it is not.
bool take(std::string_view& rest, std::string_view any_of) {
  if (rest.empty() || any_of.find(rest.front()) == std::string_view::npos) return false;
  rest.remove_prefix(1);
  return true;
}

std::optional<std::chrono::sys_days> take_date(std::string_view& rest) {
  const auto year = take_number(rest, 4);
  if (!year || !take(rest, "-")) return std::nullopt;
  const auto month = take_number(rest, 2);
  if (!month || !take(rest, "-")) return std::nullopt;
  const auto day = take_number(rest, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date);
}

/// Parses `hh:mm:ss[.fraction]` into nanoseconds. Decimal places after the ninth must be 0.
std::optional<std::int64_t> take_time(std::string_view& rest) {
  const auto hour = take_number(rest, 2);
  if (!hour || !take(rest, ":")) return std::nullopt;
  const auto minute = take_number(rest, 2);
  if (!minute || !take(rest, ":")) return std::nullopt;
  const auto second = take_number(rest, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  std::int64_t nanos = 0, place = 1'000'000'000;
  if (take(rest, ".,")) {
    const std::size_t size = rest.size();
    for (; place > 1 && !rest.empty() && rest.front() >= '0' && rest.front() <= '9'; rest.remove_prefix(1)) {
      place /= 10;
      nanos += place * (rest.front() - '0');
    }
    while (take(rest, "0")) {
    }
    if (rest.size() == size) return std::nullopt;  // no digit follows the point
  }
  return ((*hour * 60 + *minute) * 60ll + *second) * 1'000'000'000 + nanos;
}

/// Parses the rest of the text as a zone (`Z`, `+02:00`, `+0200`, `+02`); returns its offset in seconds.
std::optional<int> zone(std::string_view rest) {
  if (rest == "Z" || rest == "z") return 0;
  if (rest.empty() || (rest.front() != '+' && rest.front() != '-')) return std::nullopt;
  const int sign = rest.front() == '-' ? -1 : 1;
  rest.remove_prefix(1);
  const auto hours = take_number(rest, 2);
  if (!hours) return std::nullopt;
  if (rest.empty()) return sign * *hours * 3600;
  take(rest, ":");
  const auto minutes = take_number(rest, 2);
  if (!minutes || !rest.empty() || *minutes > 59) return std::nullopt;
  return sign * (*hours * 3600 + *minutes * 60);
}

}  // namespace

std::optional<Instant> parse_instant(std::string_view text) {
  const auto date = take_date(text);
  if (!date || !take(text, "Tt ")) return std::nullopt;
  const auto time = take_time(text);
  const auto offset = time ? zone(text) : std::nullopt;
  if (!offset) return std::nullopt;
  const std::int64_t days = date->time_since_epoch().count();
  return Instant{days * 86'400 + *time / 1'000'000'000 - *offset, *time % 1'000'000'000};
}

std::optional<Nanos> parse_nanos(std::string_view text) {
  constexpr std::int64_t kLast = 9'223'372'035;  // the year 2262, in seconds
  const auto instant = parse_instant(text);
  if (!instant || instant->seconds < -kLast || instant->seconds > kLast) return std::nullopt;
  return instant->seconds * 1'000'000'000 + instant->nanos;
}

}  // namespace driftd
