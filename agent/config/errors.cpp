// SPDX-License-Identifier: Apache-2.0
#include "config/errors.hpp"

#include <algorithm>

#include "base/escape.hpp"

namespace driftd::config {
namespace {

/// Returns the edit distance in which a swap of neighbours is one step (restricted Damerau distance).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string render(const ConfigError& error) {
  std::string out = error.file;
  if (error.at.line > 0) out += ":" + std::to_string(error.at.line) + ":" + std::to_string(error.at.column);
  out += ": " + error.what;
  if (!error.expected.empty()) out += "; expected " + error.expected;
  if (!error.found.empty()) out += "; found " + error.found;
  if (!error.next.empty()) out += "; " + error.next;
  return escaped(out);  // it may quote the file or a plugin: keeps it on one line without control characters
}

std::string render(const std::vector<ConfigError>& errors) {
  auto sorted = errors;
  std::stable_sort(sorted.begin(), sorted.end(), [](const ConfigError& a, const ConfigError& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });
  std::string out;
  for (const auto& error : sorted) out += render(error) + "\n";
  return out;
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  if (word.size() > 64) return best;
  for (const auto& candidate : known) {
    const std::size_t steps = distance(word, candidate);
    if (steps < least) {
      least = steps;
      best = candidate;
    }
  }
  return best;
}

}  // namespace driftd::config
