// SPDX-License-Identifier: Apache-2.0
#include "core/presentable_text.hpp"

#include "core/redact.hpp"

namespace driftd::core {
namespace {

constexpr std::string_view kMember = "\"$hmac\"";
constexpr std::string_view kSpace = " \t\r\n";

/// Returns the position of the `{` directly before the member, or npos if there is none.
std::size_t opening(std::string_view before) {
  const std::size_t at = before.find_last_not_of(kSpace);
  return at != std::string_view::npos && before[at] == '{' ? at : std::string_view::npos;
}

/// Removes white space and then `token` from the front. Returns false if it is not there.
bool take(std::string_view& rest, char token) {
  const std::size_t at = rest.find_first_not_of(kSpace);
  if (at == std::string_view::npos || rest[at] != token) return false;
  rest.remove_prefix(at + 1);
  return true;
}

/// Removes `: "TEXT" }` from the front if TEXT is that of a digest.
bool take_digest(std::string_view& rest) {
  std::string_view behind = rest;
  if (!take(behind, ':') || !take(behind, '"')) return false;
  const std::size_t end = behind.find('"');
  if (end == std::string_view::npos) return false;
  const Value alone = Value::Object{{"$hmac", std::string(behind.substr(0, end))}};
  behind.remove_prefix(end + 1);
  if (!take(behind, '}') || !as_digest(alone)) return false;
  rest = behind;
  return true;
}

}  // namespace

std::string presentable_text(std::string_view json) {
  // `$` is rare in a body, and a quote is not
  if (json.find(kMember.substr(1)) == std::string_view::npos) return std::string(json);
  std::string out;
  // The member's name with its quotes cannot occur inside a JSON string, where each quote has a backslash before it.
  for (std::size_t at = json.find(kMember); at != std::string_view::npos; at = json.find(kMember)) {
    const std::size_t begin = opening(json.substr(0, at));
    std::string_view rest = json.substr(at + kMember.size());
    if (begin != std::string_view::npos && take_digest(rest)) {
      out.append(json.substr(0, begin)).append("\"[REDACTED]\"");
    } else {
      out.append(json.substr(0, at + kMember.size()));
    }
    json = rest;
  }
  return out.append(json);
}

}  // namespace driftd::core
