// SPDX-License-Identifier: Apache-2.0
// Names with several spellings: container images, SQL identifiers, strings of DNS.
#include "core/value/types.hpp"

namespace driftd::core::types {
namespace {

constexpr std::size_t kMaxImageBytes = 4'096;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads `\"`, `\\` and `\065` at the front of `rest`, and removes it.
char take_escaped(std::string_view& rest) {
  const bool decimal = rest.size() > 3 && is_digit(rest[1]) && is_digit(rest[2]) && is_digit(rest[3]);
  if (!decimal) {
    const char out = rest[1];
    rest.remove_prefix(2);
    return out;
  }
  const int code = (rest[1] - '0') * 100 + (rest[2] - '0') * 10 + (rest[3] - '0');
  rest.remove_prefix(4);
  return static_cast<char>(code);
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
  if (!rest.starts_with('"')) return render(Value(std::string(rest)));
  std::string out;
  while (!rest.empty()) {
    if (rest.front() != '"') return type_mismatch("strings in quotes", text);
    rest.remove_prefix(1);
    while (!rest.empty() && rest.front() != '"') {
      if (rest.front() == '\\' && rest.size() > 1) {
        out += take_escaped(rest);
        continue;
      }
      out += rest.front();
      rest.remove_prefix(1);
    }
    if (rest.empty()) return type_mismatch("a closing quote", text);
    rest.remove_prefix(1);
    rest = strip(rest);
  }
  return render(Value(std::move(out)));
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
  if (path.empty() || tag.size() < 2) return type_mismatch("an image", text);
  if (registry == "docker.io" && path.find('/') == std::string::npos) path.insert(0, "library/");
  return render(Value(lower(registry) + "/" + path + (digest.empty() ? tag : digest)));
}

Result<std::string> sql_identifier(std::string_view text) {
  const std::string_view name = strip(text);
  if (!name.starts_with('"')) return render(Value(lower(name)));
  std::string out;
  for (std::size_t i = 1; i < name.size(); ++i) {
    const bool doubled = name[i] == '"' && i + 1 < name.size() && name[i + 1] == '"';
    if (name[i] == '"' && !doubled)
      return i + 1 == name.size() ? Result<std::string>(render(Value(std::move(out))))
                                  : type_mismatch("one name", text);
    out += name[i];
    i += doubled ? 1 : 0;
  }
  return type_mismatch("a closing quote", text);
}

}  // namespace driftd::core::types
