// SPDX-License-Identifier: Apache-2.0
#include "redis/apply_mapping.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "common/apply_steps.hpp"
#include "common/attribute_path.hpp"
#include "common/utf8_text.hpp"

namespace driftd::redis {
namespace {

using common::CannotSet;
using nlohmann::json;

/// Directives that a running server refuses to change, in every version.
constexpr std::array kFixed{"aclfile",         "appenddirname",  "appendfilename", "cluster-config-file",
                            "cluster-enabled", "daemonize",      "databases",      "logfile",
                            "pidfile",         "rename-command", "supervised",     "unixsocket"};
constexpr std::array kLogins{"masteruser", "primaryuser", "sentinel-user"};

template <class List>
bool is_one_of(const List& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string joined(const json& list, const char* between, const std::string& path) {
  std::string out;
  for (const auto& one : list) out += (out.empty() ? "" : between) + common::scalar_text(one, path);
  return out;
}

Words split(const std::string& text) {
  Words out;
  std::istringstream in(text);
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

bool is_safe(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+@|~&%*:./,=<>()";
  return !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
}

std::string quoted(const std::string& word) {
  if (is_safe(word)) return word;
  std::string out = "\"";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out.append("\\").append(1, c);
    else if (byte < 0x20 || byte == 0x7f)
      out.append("\\x").append(1, "0123456789abcdef"[byte >> 4]).append(1, "0123456789abcdef"[byte & 15]);
    else
      out += c;
  }
  return out + "\"";
}

/// `replica` → `268435456 67108864 60`
std::map<std::string, std::array<std::string, 3>> limits_of(const std::string& value) {
  std::map<std::string, std::array<std::string, 3>> out;
  const Words words = split(value);
  for (std::size_t i = 0; i + 3 < words.size(); i += 4) {
    out[words[i] == "slave" ? "replica" : words[i]] = {words[i + 1], words[i + 2], words[i + 3]};
  }
  return out;
}

std::string limits_text(const std::map<std::string, std::array<std::string, 3>>& limits) {
  std::string out;
  for (const auto& [name, one] : limits) {
    out += (out.empty() ? "" : " ") + name;
    for (const auto& part : one) out += " " + part;
  }
  return out;
}

/// Puts one part of client-output-buffer-limit into `limits`.
void put_limit(const std::vector<std::string>& names, const json& value, const std::string& path,
               std::map<std::string, std::array<std::string, 3>>& limits) {
  constexpr std::array kParts{"hard", "soft", "seconds"};
  const auto put = [&](const std::string& of, const std::string& part, const json& text) {
    const auto at = std::find(kParts.begin(), kParts.end(), part);
    if (!limits.contains(of) || at == kParts.end()) throw CannotSet(path + ": there is no such limit to set");
    limits[of][static_cast<std::size_t>(at - kParts.begin())] = common::scalar_text(text, path);
  };
  if (names.size() == 4) return put(names[2], names[3], value);
  for (const auto& [of, parts] : value.items()) {
    if (names.size() == 3) put(names[2], of, parts);
    if (names.size() != 2) continue;
    for (const auto& [part, text] : parts.items()) put(of, part, text);
  }
}

void refuse_unless_settable(const std::string& name, const std::string& path, const Config& now) {
  if (secret_directive(name) || is_one_of(kLogins, name))
    throw CannotSet(path + " is a credential, which driftd never sets");
  if (is_one_of(kFixed, name))
    throw CannotSet(path + " cannot be set: a running server refuses it; edit its configuration file and restart it");
  if (!now.contains(name))
    throw CannotSet(path + " cannot be set: the server has no such directive, or settings.config does not ask for it");
}

/// `persistence` follows from `save` and `appendonly`. It is fine if these put it back.
void check_facts(Config later, const std::vector<DirectiveChange>& set, const std::vector<sdk::Change>& changes) {
  for (const auto& one : set) later[one.name] = one.value;
  for (const auto& change : changes) {
    if (change.path.starts_with("config.") || change.path.starts_with("config[")) continue;
    const bool follows = change.path == "persistence" && json(persistence(later)).dump() == change.new_value;
    if (follows) continue;
    throw CannotSet(change.path + " cannot be set: it says what the server is" +
                    (change.path == "persistence" ? "; set config.save and config.appendonly" : ""));
  }
}

Words list_words(const json& value, const std::string& path) {
  if (!value.is_array()) throw CannotSet(path + ": expected a list");
  Words out;
  for (const auto& one : value) out.push_back(common::scalar_text(one, path));
  return out;
}

// ---- ACL

void add(Words& to, const Words& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Rules that make the user's flags these. Passwords are never touched, so `nopass` neither comes nor goes.
Words flag_rules(const Words& now, const Words& wanted) {
  const auto has = [](const Words& list, const char* flag) { return is_one_of(list, flag); };
  if (has(now, "nopass") != has(wanted, "nopass")) {
    throw CannotSet(has(wanted, "nopass")
                        ? "flags: `nopass` cannot be set: it would delete the user's passwords"
                        : "flags: `nopass` cannot be taken away without a password, and driftd never sets one: run ACL "
                          "SETUSER with `resetpass` and the user's own password");
  }
  for (const auto& flag : wanted) {
    if (flag != "nopass" && flag != "sanitize-payload" && flag != "skip-sanitize-payload")
      throw CannotSet("flags: driftd does not know the flag `" + flag + "`");
  }
  for (const char* flag : {"sanitize-payload", "skip-sanitize-payload"}) {
    if (has(wanted, flag)) return {flag};
  }
  if (!has(now, "sanitize-payload") && !has(now, "skip-sanitize-payload")) return {};
  throw CannotSet(
      "flags: a user that had neither `sanitize-payload` nor `skip-sanitize-payload` gets one of them for good: set "
      "`sanitize-payload`, which means the same, and approve the drift");
}

/// A user whose rules are exactly those of `from`, in the parts that the paths name.
Words rules_of(const AclUser& from, const AclUser& now, const std::set<std::string>& parts) {
  Words out;
  if (parts.contains("enabled")) out.push_back(from.enabled ? "on" : "off");
  if (parts.contains("flags")) add(out, flag_rules(now.flags, from.flags));
  if (parts.contains("keys")) {
    out.push_back("resetkeys");
    add(out, from.keys);
  }
  if (parts.contains("channels")) {
    out.push_back("resetchannels");
    add(out, from.channels);
  }
  if (parts.contains("commands")) {
    out.push_back("-@all");
    add(out, from.commands);
  }
  if (parts.contains("selectors")) {
    out.push_back("clearselectors");
    for (const auto& words : from.selectors) {
      std::string one;
      for (const auto& word : words) one += (one.empty() ? "" : " ") + word;
      out.push_back("(" + one + ")");
    }
  }
  for (auto& word : out) word = raw_name(word);
  return out;
}

/// Splits rules at blanks and refuses those that are none about commands.
Words command_rules(const Words& words, const std::string& path) {
  Words out;
  for (const auto& text : words) {
    for (auto& word : split(text)) {
      const bool rule = word.front() == '+' || word.front() == '-' || word == "allcommands" || word == "nocommands";
      if (!rule) throw CannotSet(path + ": `" + word + "` is not a rule about commands");
      out.push_back(std::move(word));
    }
  }
  return out;
}

Words patterns(const Words& words, const std::string& path, const std::string& begins, const std::string& all) {
  for (const auto& word : words) {
    if (word.empty() || word.find(' ') != std::string::npos ||
        (begins.find(word.front()) == std::string::npos && word != all))
      throw CannotSet(path + ": `" + word + "` is not a pattern");
  }
  return words;
}

Words selector_words(const std::string& text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')')
    throw CannotSet("selectors: expected rules in parentheses");
  Words out = split(text.substr(1, text.size() - 2));
  for (const auto& word : out) {
    const bool known = std::string_view("+-~%&").find(word.front()) != std::string_view::npos || word == "allkeys" ||
                       word == "allchannels" || word == "allcommands" || word == "nocommands" ||
                       word == "resetchannels" || word == "resetkeys";
    if (!known) throw CannotSet("selectors: `" + word + "` is not a rule that a selector may have");
  }
  return out;
}

}  // namespace

std::string raw_name(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (!common::shows_a_byte(std::string_view(text).substr(at))) {
      out += text[at++];
      continue;
    }
    out += static_cast<char>(std::stoi(text.substr(at + 2, 2), nullptr, 16));
    at += 4;
  }
  return out;
}

std::string command_text(const Words& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " ") + quoted(word);
  return out;
}

std::string config_text(const std::string& name, const json& value) {
  const std::string path = "config." + name;
  if (value.is_null()) throw CannotSet(path + " cannot be unset: Redis has no command for that, and says no default");
  if (name == "client-output-buffer-limit" && value.is_object()) {
    std::map<std::string, std::array<std::string, 3>> limits;
    for (const auto& [of, parts] : value.items()) limits[of] = {"0", "0", "0"};
    put_limit({"config", name}, value, path, limits);
    return limits_text(limits);
  }
  if (value.is_array()) return raw_name(joined(value, name == "notify-keyspace-events" ? "" : " ", path));
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return raw_name(common::scalar_text(value, path));
}

std::vector<DirectiveChange> directive_changes(const Config& now, const std::vector<sdk::Change>& changes) {
  std::map<std::string, DirectiveChange> out;
  for (const auto& change : changes) {
    const auto names = common::member_names(change.path);
    if (!names || names->front() != "config") continue;  // check_facts() looks at these
    if (names->size() < 2) throw CannotSet("config cannot be set as a whole");
    const std::string name = raw_name((*names)[1]);
    refuse_unless_settable(name, change.path, now);
    const json value = common::parse_change_value(change.new_value);
    if (value.is_null()) config_text(name, value);  // throws
    auto& one = out.try_emplace(name, DirectiveChange{name, now.at(name), now.at(name), {}}).first->second;
    one.paths.push_back(change.path);
    if (name != "client-output-buffer-limit") {
      if (names->size() != 2) throw CannotSet(change.path + " cannot be set: the directive has no such part");
      one.value = config_text(name, value);
      continue;
    }
    if (value.is_string() && names->size() == 2) {
      one.value = value.get<std::string>();
      continue;
    }
    auto limits = limits_of(one.value);
    put_limit(*names, value, change.path, limits);
    one.value = limits_text(limits);
  }
  std::vector<DirectiveChange> list;
  for (auto& [name, one] : out) list.push_back(std::move(one));
  check_facts(now, list, changes);
  return list;
}

UserChange user_change(const AclUser& now, const std::vector<sdk::Change>& changes) {
  AclUser wanted = now;
  std::set<std::string> parts;
  bool by_rules = false, by_selector_rules = false;
  for (const auto& change : changes) {
    const std::string& path = change.path;
    const json value = common::parse_change_value(change.new_value);
    if (path == "passwords") throw CannotSet("passwords are a credential, which driftd never sets");
    if (value.is_null()) throw CannotSet(path + " cannot be unset: every ACL user has it");
    if (path == "enabled") {
      if (!value.is_boolean()) throw CannotSet(path + ": expected true or false");
      wanted.enabled = value.get<bool>();
      parts.insert("enabled");
    } else if (path == "flags") {
      wanted.flags = list_words(value, path);
      parts.insert("flags");
    } else if (path == "keys") {
      wanted.keys = patterns(list_words(value, path), path, "~%", "allkeys");
      parts.insert("keys");
    } else if (path == "channels") {
      wanted.channels = patterns(list_words(value, path), path, "&", "allchannels");
      parts.insert("channels");
    } else if (path == "rules" || path == "commands") {
      parts.insert("commands");
      if (by_rules) continue;  // the rules as text say more than what they allow
      by_rules = path == "rules";
      wanted.commands =
          command_rules(value.is_array() ? list_words(value, path) : Words{common::scalar_text(value, path)}, path);
    } else if (path == "selector_rules" || path == "selectors") {
      parts.insert("selectors");
      if (by_selector_rules) continue;
      by_selector_rules = path == "selector_rules";
      wanted.selectors.clear();
      for (const auto& one : list_words(value, path)) wanted.selectors.push_back(selector_words(one));
    } else {
      throw CannotSet(path + " cannot be set: an ACL user has no such attribute");
    }
  }
  return {rules_of(wanted, now, parts), rules_of(now, now, parts)};
}

}  // namespace driftd::redis
