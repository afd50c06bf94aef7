// SPDX-License-Identifier: Apache-2.0
#include "config/units.hpp"

#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

namespace driftd::config {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 6> kDurations = {
    {{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}, {"y", 31'536'000'000}}};
constexpr std::array<std::pair<std::string_view, double>, 10> kSizes = {{{"B", 1},
                                                                         {"KiB", 1024.0},
                                                                         {"MiB", 1048576.0},
                                                                         {"GiB", 1073741824.0},
                                                                         {"TiB", 1099511627776.0},
                                                                         {"kB", 1e3},
                                                                         {"KB", 1e3},
                                                                         {"MB", 1e6},
                                                                         {"GB", 1e9},
                                                                         {"TB", 1e12}}};

bool digit(char c) { return c >= '0' && c <= '9'; }

/// Removes `12` or `1.5` from the front and returns it.
std::optional<double> take_number(std::string_view& text) {
  std::size_t end = 0;
  int dots = 0;
  while (end < text.size() && (digit(text[end]) || text[end] == '.')) dots += text[end++] == '.' ? 1 : 0;
  if (end == 0 || end > 18 || dots > 1 || text[0] == '.' || text[end - 1] == '.') return std::nullopt;
  const double number = std::strtod(std::string(text.substr(0, end)).c_str(), nullptr);
  text.remove_prefix(end);
  return number;
}

template <std::size_t N>
std::optional<double> take_unit(std::string_view& text,
                                const std::array<std::pair<std::string_view, double>, N>& units) {
  std::size_t end = 0;
  while (end < text.size() && !digit(text[end])) ++end;
  for (const auto& [name, factor] : units) {
    if (text.substr(0, end) != name) continue;
    text.remove_prefix(end);
    return factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  double total = 0;
  double last = INFINITY;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    const auto factor = take_unit(text, kDurations);
    if (!factor || *factor >= last) return std::nullopt;  // rejects 5m1h: larger units come first
    last = *factor;
    total += *number * *factor;
  }
  if (total > 1e16) return std::nullopt;
  return std::chrono::milliseconds(std::llround(total));
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  const auto factor = take_unit(text, kSizes);
  if (!factor || !text.empty() || *number * *factor > 9e18) return std::nullopt;
  return std::llround(*number * *factor);
}

}  // namespace driftd::config
