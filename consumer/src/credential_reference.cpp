// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "driftd/consumer/credentials.hpp"

namespace driftd::consumer {
namespace {

using Scheme = CredentialReference::Scheme;

constexpr std::size_t kMaxVariable = 255, kMaxPath = 4'095, kMaxLabel = 63, kMaxName = 253, kMaxBackend = 128,
                      kMaxAgentReference = 4'200;
constexpr const char* kForms =
    "a reference is `env:NAME`, `file:/path`, `k8s:<namespace>/<name>#<key>` or `agent:<backend>#<reference>`";

// Not the functions of <cctype>, which depend on the locale.
bool digit(char c) { return c >= '0' && c <= '9'; }
bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

template <class Good>
bool all(std::string_view text, Good good) {
  return std::all_of(text.begin(), text.end(), good);
}

bool is_variable(std::string_view text) {
  return !text.empty() && text.size() <= kMaxVariable && !digit(text[0]) &&
         all(text, [](char c) { return upper(c) || lower(c) || digit(c) || c == '_'; });
}

/// An absolute path in its plain form: no empty part, no `.`, no `..`, so that it names the file that it seems to name.
bool is_path(std::string_view text) {
  if (text.size() < 2 || text.size() > kMaxPath || text[0] != '/' || !all(text, [](char c) { return !control(c); })) {
    return false;
  }
  for (std::size_t at = 1; at <= text.size();) {
    const std::size_t end = std::min(text.find('/', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

/// A DNS label of RFC 1123, as a namespace is one.
bool is_label(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLabel && text.front() != '-' && text.back() != '-' &&
         all(text, [](char c) { return lower(c) || digit(c) || c == '-'; });
}

/// A DNS subdomain of RFC 1123, as the name of a Secret is one.
bool is_subdomain(std::string_view text) {
  if (text.empty() || text.size() > kMaxName) return false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('.', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const bool good = !part.empty() && part.front() != '-' && part.back() != '-' &&
                      all(part, [](char c) { return lower(c) || digit(c) || c == '-'; });
    if (!good) return false;
    at = end + 1;
  }
  return true;
}

/// A key of a Secret's data, by the rule of the Kubernetes API.
bool is_key(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && text != "." && !text.starts_with("..") &&
         all(text, [](char c) { return lower(c) || upper(c) || digit(c) || c == '-' || c == '_' || c == '.'; });
}

tl::unexpected<Error> wrong(const std::string& why) { return fail(Code::invalid, "credential reference: " + why); }

Result<CredentialReference> parse_k8s(std::string_view rest) {
  const std::size_t slash = rest.find('/'), hash = rest.find('#');
  if (slash == rest.npos || hash == rest.npos || hash < slash) {
    return wrong("`k8s:` must be followed by <namespace>/<name>#<key>");
  }
  const std::string_view space = rest.substr(0, slash), name = rest.substr(slash + 1, hash - slash - 1),
                         key = rest.substr(hash + 1);
  if (!is_label(space)) return wrong("the namespace of a `k8s:` reference is not a DNS label of up to 63 characters");
  if (!is_subdomain(name))
    return wrong("the Secret's name in a `k8s:` reference is not a DNS name of up to 253 characters");
  if (!is_key(key))
    return wrong("the key of a `k8s:` reference has characters other than letters, digits, `-`, `_`, `.`");
  return CredentialReference{Scheme::k8s, std::string(name), std::string(space), std::string(key)};
}

/// The agent knows its references; here only what could break a line or a header is refused.
Result<CredentialReference> parse_agent(std::string_view rest) {
  const std::size_t hash = rest.find('#');
  if (hash == rest.npos) return wrong("`agent:` must be followed by <backend>#<reference>");
  const std::string_view backend = rest.substr(0, hash), reference = rest.substr(hash + 1);
  if (backend.empty() || backend.size() > kMaxBackend ||
      !all(backend, [](char c) { return !control(c) && c != ' ' && c != '/' && c != '*' && c != '>'; })) {
    return wrong(
        "the backend of an `agent:` reference is not a name of 1 to 128 characters without ` `, `/`, `*`, `>`");
  }
  if (reference.empty() || reference.size() > kMaxAgentReference ||
      !all(reference, [](char c) { return !control(c); }) || reference.find(':') == reference.npos) {
    return wrong("what follows the `#` of an `agent:` reference is not a reference of driftd's configuration");
  }
  return CredentialReference{Scheme::agent, std::string(reference), std::string(backend), {}};
}

}  // namespace

Result<CredentialReference> parse_reference(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return wrong(std::string("it has no scheme; ") + kForms);
  const std::string_view scheme = text.substr(0, colon), rest = text.substr(colon + 1);
  if (scheme == "env") {
    if (!is_variable(rest)) return wrong("`env:` must be followed by the name of a variable, letters, digits and `_`");
    return CredentialReference{Scheme::env, std::string(rest), {}, {}};
  }
  if (scheme == "file") {
    if (!is_path(rest)) return wrong("`file:` must be followed by an absolute path without `.`, `..` and `//`");
    return CredentialReference{Scheme::file, std::string(rest), {}, {}};
  }
  if (scheme == "k8s") return parse_k8s(rest);
  if (scheme == "agent") return parse_agent(rest);
  return wrong(std::string("its scheme is not known; ") + kForms);
}

std::string render(const CredentialReference& reference) {
  switch (reference.scheme) {
    case Scheme::env:
      return "env:" + reference.name;
    case Scheme::file:
      return "file:" + reference.name;
    case Scheme::agent:
      return "agent:" + reference.space + "#" + reference.name;
    case Scheme::k8s:
      break;
  }
  return "k8s:" + reference.space + "/" + reference.name + "#" + reference.key;
}

}  // namespace driftd::consumer
