// SPDX-License-Identifier: Apache-2.0
#include "core/enforce/window.hpp"

#include <algorithm>
#include <array>
#include <ctime>

namespace driftd::core {
namespace {

constexpr int kDayMin = 24 * 60;
constexpr unsigned kEveryDay = 0x7f;
constexpr Nanos kMinute = 60'000'000'000;
constexpr std::array<std::string_view, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

tl::unexpected<Error> wrong(std::string_view text, const std::string& what) {
  return fail(Code::invalid, "maintenance window '" + std::string(text) + "': " + what +
                                 "; expected [DAYS] HH:MM-HH:MM [UTC|local], such as 'Mon-Fri 22:00-04:00 UTC'");
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = text.find_first_not_of(' '); at != std::string_view::npos;
       at = text.find_first_not_of(' ', at)) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

/// Returns -1 if it is not a day.
int day_of(std::string_view name) {
  const auto found = std::find(kDays.begin(), kDays.end(), name);
  return found == kDays.end() ? -1 : static_cast<int>(found - kDays.begin());
}

/// Returns 0 if it is not a list of days.
unsigned days_of(std::string_view list) {
  unsigned out = 0;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    const std::size_t dash = item.find('-');
    const int first = day_of(item.substr(0, dash));
    const int last = dash == std::string_view::npos ? first : day_of(item.substr(dash + 1));
    if (first < 0 || last < 0) return 0;
    for (int day = first;; day = (day + 1) % 7) {
      out |= 1u << day;
      if (day == last) break;
    }
  }
  return out;
}

/// Returns -1 if it is not a time of the day.
int minute_of(std::string_view text) {
  const auto digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9' ? text[i] - '0' : -1; };
  if (text.size() != 5 || text[2] != ':') return -1;
  for (const std::size_t i : {0u, 1u, 3u, 4u}) {
    if (digit(i) < 0) return -1;
  }
  const int hour = digit(0) * 10 + digit(1), minute = digit(3) * 10 + digit(4);
  const bool end_of_day = hour == 24 && minute == 0;
  return (hour < 24 && minute < 60) || end_of_day ? hour * 60 + minute : -1;
}

Nanos local_of(const MaintenanceWindow& window, Nanos now_ns, std::chrono::seconds offset) {
  return window.local ? now_ns + std::chrono::nanoseconds(offset).count() : now_ns;
}

/// The first of January 1970 was a Thursday.
int weekday(Nanos days) { return static_cast<int>((days % 7 + 7 + 4) % 7); }

bool begins_on(const MaintenanceWindow& window, Nanos day) { return (window.days >> weekday(day) & 1u) != 0; }

bool open_at(const MaintenanceWindow& window, Nanos minutes) {
  const Nanos day = minutes / kDayMin;
  const int minute = static_cast<int>(minutes % kDayMin);
  if (window.end_min > window.begin_min)
    return begins_on(window, day) && minute >= window.begin_min && minute < window.end_min;
  return (begins_on(window, day) && minute >= window.begin_min) ||
         (begins_on(window, day - 1) && minute < window.end_min);
}

}  // namespace

Result<MaintenanceWindow> parse_window(std::string_view text) {
  MaintenanceWindow out;
  out.text = std::string(text);
  std::vector<std::string_view> words = words_of(text);
  if (!words.empty() && (words.back() == "UTC" || words.back() == "local")) {
    out.local = words.back() == "local";
    words.pop_back();
  } else if (!words.empty() && words.back().find(':') == std::string_view::npos) {
    return wrong(text, "the zone '" + std::string(words.back()) + "' is not known");
  }
  if (words.empty() || words.size() > 2) return wrong(text, "it has no span of time, or too many words");
  out.days = words.size() == 2 ? days_of(words.front()) : kEveryDay;
  if (out.days == 0) return wrong(text, "'" + std::string(words.front()) + "' is not a list of days");
  const std::string_view span = words.back();
  const std::size_t dash = std::min(span.find('-'), span.size());
  out.begin_min = minute_of(span.substr(0, dash));
  out.end_min = dash < span.size() ? minute_of(span.substr(dash + 1)) : -1;
  if (out.begin_min < 0 || out.end_min < 0 || out.begin_min == kDayMin)
    return wrong(text, "'" + std::string(span) + "' is not a span of time");
  return out;
}

std::chrono::seconds local_offset(Nanos now_ns) {
  const std::time_t seconds = now_ns / 1'000'000'000;
  std::tm local{};
  return std::chrono::seconds(localtime_r(&seconds, &local) == nullptr ? 0 : local.tm_gmtoff);
}

bool in_window(const std::vector<MaintenanceWindow>& windows, Nanos now_ns, std::chrono::seconds local_offset) {
  return std::any_of(windows.begin(), windows.end(), [&](const MaintenanceWindow& window) {
    return open_at(window, local_of(window, now_ns, local_offset) / kMinute);
  });
}

std::optional<Nanos> next_window(const std::vector<MaintenanceWindow>& windows, Nanos now_ns,
                                 std::chrono::seconds local_offset) {
  std::optional<Nanos> out;
  for (const auto& window : windows) {
    const Nanos minutes = local_of(window, now_ns, local_offset) / kMinute, today = minutes / kDayMin;
    for (Nanos day = today; day <= today + 7; ++day) {
      const Nanos begin = day * kDayMin + window.begin_min;
      if (!begins_on(window, day) || begin <= minutes) continue;
      const Nanos at = (now_ns / kMinute + (begin - minutes)) * kMinute;
      if (!out || at < *out) out = at;
      break;
    }
  }
  return out;
}

}  // namespace driftd::core
