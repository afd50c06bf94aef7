// SPDX-License-Identifier: Apache-2.0
// Names with several spellings: container images, SQL identifiers, strings of DNS.
#include <simdjson.h>
#include <optional>

#include "base/digest.hpp"
#include "core/value/sql_tokens.hpp"
#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

constexpr std::size_t kMaxImageBytes = 4'096;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads `\"`, `\\` and `\065` at the front of `rest`, and removes it. Empty if it is no escape.
std::optional<char> take_escaped(std::string_view& rest) {
  if (rest.size() < 2) return std::nullopt;
  if (!is_digit(rest[1])) {
    const char out = rest[1];
    rest.remove_prefix(2);
    return out;
  }
  if (rest.size() < 4 || !is_digit(rest[2]) || !is_digit(rest[3])) return std::nullopt;
  const int code = (rest[1] - '0') * 100 + (rest[2] - '0') * 10 + (rest[3] - '0');
  if (code > 255) return std::nullopt;
  rest.remove_prefix(4);
  return static_cast<char>(code);
}

/// Returns a text as JSON; bytes that are not UTF-8 as `["bytes", hexadecimal digits]`, which is the form of no text.
std::string form_of_bytes(std::string bytes) {
  if (simdjson::validate_utf8(bytes)) return render(Value(std::move(bytes)));
  return render(Value(Value::Array{Value("bytes"), Value(to_hex(bytes))}));
}

/// Returns true for `sha256:` and hexadecimal digits.
bool is_digest(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == 0 || colon == std::string_view::npos || colon + 1 == text.size()) return false;
  return text.substr(0, colon).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+._-") ==
             std::string_view::npos &&
         text.substr(colon + 1).find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

/// Returns the first component of an image if it names a registry: it has a dot or a port, or is localhost.
std::string_view registry_of(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return {};
  const auto first = name.substr(0, slash);
  const bool registry = first == "localhost" || first.find_first_of(".:") != std::string_view::npos;
  return registry ? first : std::string_view();
}

}  // namespace

Result<std::string> txt(std::string_view text) {
  std::string_view rest = strip(text);
  if (!rest.starts_with('"')) return form_of_bytes(std::string(rest));
  std::string out;
  while (!rest.empty()) {
    if (rest.front() != '"') return type_mismatch("strings in quotes", text);
    rest.remove_prefix(1);
    while (!rest.empty() && rest.front() != '"') {
      if (rest.front() == '\\') {
        const auto byte = take_escaped(rest);
        if (!byte) return type_mismatch("an escape of up to \\255", text);
        out += *byte;
        continue;
      }
      out += rest.front();
      rest.remove_prefix(1);
    }
    if (rest.empty()) return type_mismatch("a closing quote", text);
    rest.remove_prefix(1);
    rest = strip(rest);
  }
  return form_of_bytes(std::move(out));
}

Result<std::string> image(std::string_view text) {
  std::string_view name = strip(text);
  if (name.empty() || name.size() > kMaxImageBytes || name.find_first_of(" \t\r\n") != std::string_view::npos)
    return type_mismatch("an image", text);
  const auto at = name.find('@');
  const std::string digest(at == std::string_view::npos ? "" : name.substr(at));
  name = name.substr(0, at);
  const auto slash = name.rfind('/');
  const auto colon = name.find(':', slash == std::string_view::npos ? 0 : slash);
  const std::string tag(colon == std::string_view::npos ? ":latest" : name.substr(colon));
  name = name.substr(0, colon);
  std::string registry(registry_of(name));
  std::string path(registry.empty() ? name : name.substr(registry.size() + 1));
  if (registry.empty() || registry == "index.docker.io" || registry == "registry-1.docker.io") registry = "docker.io";
  if (path.empty() || tag.size() < 2 || (at != std::string_view::npos && !is_digest(digest.substr(1))))
    return type_mismatch("an image", text);
  if (registry == "docker.io" && path.find('/') == std::string::npos) path.insert(0, "library/");
  return render(Value(lower(registry) + "/" + path + (digest.empty() ? tag : digest)));
}

Result<std::string> sql_identifier(std::string_view text) {
  std::string_view rest = strip(text);
  std::string out;
  while (true) {
    const bool quoted = rest.starts_with('"');
    std::size_t end = quoted ? 1 : std::min(rest.find('.'), rest.size());
    std::string name = quoted ? "" : lower(rest.substr(0, end));
    for (; quoted && end < rest.size(); ++end) {
      const bool doubled = rest.substr(end).starts_with("\"\"");
      if (rest[end] == '"' && !doubled) break;
      name += rest[end];
      end += doubled ? 1 : 0;
    }
    if (quoted && end++ >= rest.size()) return type_mismatch("a closing quote", text);
    if (!quoted && name.find('"') != std::string::npos) return type_mismatch("quotes around a whole name", text);
    out += quoted ? (is_plain_name(name) ? name : in_quotes('"', name)) : name;
    if (end == rest.size()) return render(Value(std::move(out)));
    if (rest[end] != '.') return type_mismatch("one name", text);
    out += '.';
    rest.remove_prefix(end + 1);
  }
}

}  // namespace driftd::core::types
