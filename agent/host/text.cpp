// SPDX-License-Identifier: Apache-2.0
#include "host/text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/value.hpp"

namespace driftd::host {
namespace {

constexpr std::size_t kShortestScrubbed = 3;
constexpr std::size_t kShortestInDocument = 12;

/// Bytes of the well-formed sequence at the front (Unicode 15, table 3-7); 0: none.
std::size_t sequence(std::string_view s) {
  const auto at = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const unsigned a = at(0);
  const unsigned b = at(1);
  const auto tail = [](unsigned c) { return c >= 0x80 && c <= 0xbf; };
  if (a < 0x80) return 1;
  if (a >= 0xc2 && a <= 0xdf) return tail(b) ? 2 : 0;
  if (a >= 0xe0 && a <= 0xef) {
    const bool second = tail(b) && (a != 0xe0 || b >= 0xa0) && (a != 0xed || b <= 0x9f);
    return second && tail(at(2)) ? 3 : 0;
  }
  if (a >= 0xf0 && a <= 0xf4) {
    const bool second = tail(b) && (a != 0xf0 || b >= 0x90) && (a != 0xf4 || b <= 0x8f);
    return second && tail(at(2)) && tail(at(3)) ? 4 : 0;
  }
  return 0;
}

void replace_all(std::string& text, const std::string& what) {
  static constexpr std::string_view kInstead = "[REDACTED]";
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + kInstead.size())) {
    text.replace(at, what.size(), kInstead);
  }
}

std::string escaped(const std::string& secret) {
  const std::string quoted = core::render(core::Value(secret));
  return quoted.substr(1, quoted.size() - 2);
}

void longest_first(std::vector<std::string>& list) {
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    std::uint64_t eight = 0;
    for (; text.size() >= sizeof eight; text.remove_prefix(sizeof eight)) {
      std::memcpy(&eight, text.data(), sizeof eight);
      if ((eight & 0x8080808080808080) != 0) break;
    }
    if (text.empty()) return true;
    const std::size_t n = sequence(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string out;
  while (!text.empty() && out.size() < most) {
    const std::size_t n = sequence(text);
    if (n == 0) {
      out += '?';
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

std::string one_line(std::string_view text, std::size_t most) {
  std::string out = printable(text, most);
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  std::replace_if(out.begin(), out.end(), control, '?');
  return out;
}

Scrubber::Scrubber(const std::map<std::string, std::string>& secrets) {
  for (const auto& [token, secret] : secrets) {
    for (const auto& form : {secret, is_utf8(secret) ? escaped(secret) : secret}) {
      if (secret.size() >= kShortestScrubbed) all_.push_back(form);
      if (secret.size() >= kShortestInDocument) long_.push_back(form);
    }
  }
  longest_first(all_);
  longest_first(long_);
}

std::string Scrubber::text(std::string text) const {
  for (const auto& secret : all_) replace_all(text, secret);
  return text;
}

std::string Scrubber::document(std::string json) const {
  for (const auto& secret : long_) replace_all(json, secret);
  return json;
}

}  // namespace driftd::host
