// SPDX-License-Identifier: Apache-2.0
// Schedules, rates and file modes.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kDays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
const std::map<std::string, std::string, std::less<>> kNicknames = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
    {"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"}};

std::string json_text(std::string_view text) { return render(Value(std::string(text))); }

std::vector<std::string> words_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find_first_of(separators, at), text.size());
    if (end > at) out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t out = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && at == text.data() + text.size() && !text.empty() ? std::optional(out) : std::nullopt;
}

/// One field of a cron expression. `first` is the number of the first of `names`.
struct Field {
  std::span<const std::string_view> names;
  unsigned first = 0;
  bool sunday_is_seven = false;

  std::string value(const std::string& text) const {
    const auto name = std::find(names.begin(), names.end(), text);
    if (name != names.end()) return std::to_string(first + static_cast<unsigned>(name - names.begin()));
    const auto number = whole_number(text);
    if (!number) return text;  // L, W, #, LW: as they are
    return std::to_string(sunday_is_seven && *number == 7 ? 0 : *number);
  }

  /// `mon-fri/2` -> `1-5/2`
  std::string part(const std::string& text) const {
    const auto slash = text.find('/');
    std::string range = text.substr(0, slash), out;
    // Sunday is 7 at the end of a range
    const Field plain{names, first, false};
    const auto dash = range.find('-');
    if (dash == std::string::npos) {
      const Field& field = slash == std::string::npos ? *this : plain;  // 7/2 begins at 7
      out = range == "?" ? "*" : field.value(range);
    } else {
      out = plain.value(range.substr(0, dash)) + "-" + plain.value(range.substr(dash + 1));
    }
    if (slash == std::string::npos) return out;
    const std::string step = plain.value(text.substr(slash + 1));
    return step == "1" && out == "*" ? out : out + "/" + step;
  }

  std::string of(const std::string& text) const {
    std::vector<std::string> parts;
    for (const auto& one : words_of(text, ",")) parts.push_back(part(one));
    std::sort(parts.begin(), parts.end());
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    return std::accumulate(parts.begin(), parts.end(), std::string(), [](std::string sum, const std::string& one) {
      return sum + (sum.empty() ? "" : ",") + one;
    });
  }
};

/// The text between `name(` and `)`. Empty if the text has another form.
std::optional<std::string_view> argument_of(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || text.size() < name.size() + 2 || text[name.size()] != '(' || text.back() != ')')
    return std::nullopt;
  return strip(text.substr(name.size() + 1, text.size() - name.size() - 2));
}

constexpr std::string_view kCronLetters = "0123456789abcdefghijklmnopqrstuvwxyz*?/-,#";

/// `100/1m`, `100 per minute`, `100r/s`: how many in how many nanoseconds.
Result<std::string> count_per_time(std::string_view text) {
  auto cut = text.find(" per ");
  std::size_t length = 5;
  if (cut == std::string_view::npos) cut = text.find('/'), length = 1;
  if (cut == std::string_view::npos) return type_mismatch("a rate", text);
  std::string_view left = strip(text.substr(0, cut));
  if (left.ends_with('r')) left.remove_suffix(1);
  const auto count = whole_number(strip(left));
  std::string every(strip(text.substr(cut + length)));
  if (!every.empty() && (every.front() < '0' || every.front() > '9')) every.insert(0, "1");
  const auto time = duration(every, "");
  const auto ns = time ? whole_number(*time) : std::nullopt;
  if (!count || !ns || *ns == 0) return type_mismatch("a rate", text);
  const std::uint64_t divisor = std::max<std::uint64_t>(std::gcd(*count, *ns), 1);
  return json_text(std::to_string(*count / divisor) + "/" + std::to_string(*ns / divisor));
}

}  // namespace

std::string short_weeks(std::string_view text) {
  std::string out(text);
  const auto at = lower(out).find("week");
  if (at != std::string::npos) out.erase(at + 1, out.size() > at + 4 && lower(out)[at + 4] == 's' ? 4 : 3);
  return out;
}

Result<std::string> cron(std::string_view text) {
  const std::string folded = lower(strip(text));
  const auto wrapped = argument_of(folded, "cron");
  const auto nickname = kNicknames.find(folded);
  const auto fields =
      words_of(nickname != kNicknames.end() ? nickname->second : wrapped.value_or(std::string_view(folded)), " \t\r\n");
  if (fields.size() < 5 || fields.size() > 6) return type_mismatch("a cron expression", text);
  for (const auto& field : fields) {
    if (field.find_first_not_of(kCronLetters) != std::string::npos) return type_mismatch("a cron expression", text);
  }
  // cron(…) of schedulers has the year last and counts days of the week from 1; six bare fields begin with seconds
  const std::size_t minutes = fields.size() == 6 && !wrapped ? 1 : 0;
  std::string out = wrapped ? "cron" : fields.size() == 6 ? "seconds" : "";
  for (std::size_t i = 0; i < fields.size(); ++i) {
    Field field;
    if (i == minutes + 3) field = {kMonths, 1, false};
    if (i == minutes + 4) field = wrapped ? Field{kDays, 1, false} : Field{kDays, 0, true};
    out += (out.empty() ? "" : " ") + field.of(fields[i]);
  }
  return json_text(out);
}

Result<std::string> rate(std::string_view text) {
  const std::string folded = lower(strip(text));
  if (const auto every = argument_of(folded, "rate")) return duration(*every, "");
  return count_per_time(folded);
}

Result<std::string> mode(std::string_view text, bool is_number) {
  std::string_view digits = strip(text);
  if (digits.starts_with("0o")) digits.remove_prefix(2);
  std::uint32_t out = 0;
  const auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out, is_number ? 10 : 8);
  if (error != std::errc() || digits.empty() || at != digits.data() + digits.size() || out > 07777)
    return type_mismatch("a file mode", text);
  return std::to_string(out);
}

}  // namespace driftd::core::types
