// SPDX-License-Identifier: Apache-2.0
// Parses request targets such as /v1/drifts?backend=a%20b.
#include <cctype>

#include "admin/api.hpp"

namespace driftd::admin {
namespace {

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

Result<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex(text[i + 2]) : -1;
    if (high < 0 || low < 0) return fail(Code::invalid, "a malformed %-escape in the request target");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace

Result<Request> parse_target(std::string_view target) {
  Request out;
  if (target.empty() || target.front() != '/') return fail(Code::invalid, "the request target must start with /");
  const std::size_t mark = target.find('?');
  DRIFTD_TRY(out.path, decode(target.substr(0, mark), false));
  std::string_view rest = mark == std::string_view::npos ? std::string_view{} : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    DRIFTD_TRY(std::string name, decode(pair.substr(0, equals), true));
    DRIFTD_TRY(std::string value, decode(pair.substr(std::min(pair.size(), equals + 1)), true));
    if (!name.empty()) out.query[std::move(name)] = std::move(value);
  }
  return out;
}

}  // namespace driftd::admin
