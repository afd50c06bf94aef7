// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>

#include "driftd/sdk/user_info.hpp"

// Which texts hold a secret by their form. One rule for the agent, the host and every provider: a value that one of
// them withholds and another shows could never be compared. Pure.
namespace driftd::sdk {
namespace secret_text_detail {

/// Returns the name before the `=` or `:` at `end`, in lower case and without `_` and `-`; empty if there is none.
inline std::string key_before(std::string_view text, std::size_t end) {
  while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '"' || text[end - 1] == '\'')) --end;
  std::size_t begin = end;
  while (begin > 0 && end - begin < 64 &&
         (is_word(text[begin - 1]) || text[begin - 1] == '_' || text[begin - 1] == '-'))
    --begin;
  std::string out;
  for (const char c : text.substr(begin, end - begin)) {
    if (is_word(c)) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

/// True if a name from key_before() is one of a secret: `dbpassword`, `apikey`, `sig`.
inline bool secret_key(std::string_view key) {
  constexpr std::array<std::string_view, 14> kEnds = {
      "password",  "passwd",     "pwd",       "passphrase", "secret",    "token",      "apikey",
      "accesskey", "accountkey", "secretkey", "privatekey", "signature", "credential", "authkey"};
  if (key == "sig" || key == "pass" || key == "auth") return true;
  const auto ends = [key](std::string_view end) {
    return key.size() >= end.size() && key.compare(key.size() - end.size(), end.size(), end) == 0;
  };
  return std::any_of(kEnds.begin(), kEnds.end(), ends);
}

/// True if the text after `password=` is a value, not a placeholder, a number or a word like `true`.
inline bool telling_value(std::string_view rest) {
  rest = rest.substr(0, rest.find('\n'));
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '"' || rest.front() == '\'' || rest.front() == '\\'))
    rest.remove_prefix(1);
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t\r\"'&;,"));
  if (word.empty() || std::string_view("${%<*[(|>/#").find(word.front()) != std::string_view::npos) return false;
  constexpr std::array<std::string_view, 6> kWords = {"true", "false", "null", "none", "yes", "no"};
  return word.find_first_not_of("0123456789") != word.npos &&
         std::find(kWords.begin(), kWords.end(), word) == kWords.end();
}

/// True if the text contains `password=…`, `"token": "…"`, `AccountKey=…`, `?sig=…` or the like.
inline bool assigns_secret(std::string_view text) {
  for (auto at = text.find_first_of("=:"); at != text.npos; at = text.find_first_of("=:", at + 1)) {
    // `secret:prod/db#password` is a reference: a colon assigns where a blank or a quote stands beside it
    const auto beside = [](char c) { return c == ' ' || c == '"' || c == '\''; };
    const bool assigns =
        text[at] == '=' || (at > 0 && beside(text[at - 1])) || (at + 1 < text.size() && beside(text[at + 1]));
    if (assigns && secret_key(key_before(text, at)) && telling_value(text.substr(at + 1))) return true;
  }
  return false;
}

/// `has_key("key=AKIA…", "AKIA", 16)`: true if a word begins with the prefix and at least `count` letters of a key
/// follow it.
inline bool has_key(std::string_view text, std::string_view prefix, std::size_t count) {
  for (auto at = text.find(prefix); at != text.npos; at = text.find(prefix, at + 1)) {
    if (at > 0 && is_word(text[at - 1])) continue;
    std::string_view rest = text.substr(at + prefix.size());
    std::size_t letters = 0;
    while (letters < rest.size() && (is_word(rest[letters]) || rest[letters] == '_' || rest[letters] == '-')) ++letters;
    if (letters >= count) return true;
  }
  return false;
}

}  // namespace secret_text_detail

/// True for a private key or a URL with a password: a credential, whatever its name.
inline bool holds_secret(std::string_view text) {
  if (text.find("PRIVATE KEY-----") != text.npos) return true;
  for (auto scheme = text.find("://"); scheme != text.npos; scheme = text.find("://", scheme + 3)) {
    const std::string_view rest = text.substr(scheme + 3);
    const auto end = secret_text_detail::user_info(rest);
    if (end != 0 && rest.substr(0, end).find(':') != rest.npos) return true;
  }
  return false;
}

/// True for what may be a secret: user-info in a URL, `password=…`, `token: …`, `AccountKey=…`, a JWT, keys of clouds
/// and forges by their prefix, a kubeconfig with a key. It can be wrong, so it only withholds a value and never makes
/// it a credential.
inline bool may_hold_secret(std::string_view text) {
  using namespace secret_text_detail;
  if (holds_secret(text) || assigns_secret(text) || text.find("client-key-data") != text.npos) return true;
  for (auto scheme = text.find("://"); scheme != text.npos; scheme = text.find("://", scheme + 3)) {
    if (user_info(text.substr(scheme + 3)) != 0) return true;
  }
  if (const auto jwt = text.find("eyJ"); jwt != text.npos && text.find(".eyJ", jwt) != text.npos) return true;
  struct Known {
    std::string_view prefix;
    std::size_t letters;  ///< fewest that follow in a real key
  };
  constexpr std::array<Known, 13> kKnown = {{{"AKIA", 16},         // AWS access key
                                             {"ASIA", 16},         // AWS, temporary
                                             {"AIza", 30},         // Google API key
                                             {"ya29.", 20},        // Google OAuth access token
                                             {"ghp_", 30},         // GitHub: personal,
                                             {"gho_", 30},         // OAuth,
                                             {"ghs_", 30},         // installation of an app,
                                             {"github_pat_", 20},  // fine-grained
                                             {"glpat-", 16},       // GitLab
                                             {"xoxb-", 10},        // Slack: bot,
                                             {"xoxp-", 10},        // user
                                             {"sk_live_", 16},     // Stripe
                                             {"hvs.", 20}}};       // HashiCorp Vault
  return std::any_of(kKnown.begin(), kKnown.end(),
                     [&](const Known& one) { return has_key(text, one.prefix, one.letters); });
}

/// Returns the text with user-info, query and fragment cut from every URL in it: what is shown of an address.
/// `see https://user:pw@host/path?token=1` becomes `see https://host/path`.
inline std::string without_credentials(std::string_view text) {
  std::string out;
  for (auto scheme = text.find("://"); scheme != text.npos; scheme = text.find("://")) {
    out += text.substr(0, scheme + 3);
    text.remove_prefix(scheme + 3);
    text.remove_prefix(secret_text_detail::user_info(text));
    const auto end = std::min(text.find_first_of("?# \t\n"), text.size());
    if (text.find("://") < end) continue;  // a list without blanks: the next URL begins before this one ends
    out += text.substr(0, end);
    text.remove_prefix(end);
    const bool query = !text.empty() && (text.front() == '?' || text.front() == '#');
    if (query) text.remove_prefix(std::min(text.find_first_of(" \t\n\"'<>)"), text.size()));
  }
  return out += text;
}

}  // namespace driftd::sdk
