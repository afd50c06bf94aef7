// SPDX-License-Identifier: Apache-2.0
#include "redis/acl.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/utf8_text.hpp"
#include "redis/acl_keys.hpp"

namespace driftd::redis {
namespace {

using nlohmann::json;

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

bool is_command_rule(const std::string& word) {
  return word.front() == '+' || word.front() == '-' || word == "allcommands" || word == "nocommands";
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

void take_rule(AclUser& user, const std::string& word) {
  const char first = word.front();
  if (word == "on" || word == "off") user.enabled = word == "on";
  else if (first == '#') user.passwords.push_back(word.substr(1));
  else if (first == '~' || first == '%' || word == "allkeys") user.keys.push_back(word);
  else if (first == '&' || word == "allchannels") user.channels.push_back(word);
  else if (is_command_rule(word)) user.commands.push_back(word);
  else if (word != "resetchannels" && word != "resetkeys") user.flags.push_back(word);  // those say: none
}

/// `(~k* resetchannels -@all +get)` in one form: keys, channels, then commands as they are or as what they allow.
std::string selector_text(const std::vector<std::string>& words, const AclCategories* categories) {
  AclUser parts;
  for (const auto& word : words) take_rule(parts, word);
  std::vector<std::string> out = normal_keys(parts.keys);
  for (const auto& channel : normal_channels(parts.channels)) out.push_back(channel);
  if (categories == nullptr) out.push_back(ordered(joined(parts.commands)));
  else for (auto& rule : effective_commands(parts.commands, *categories)) out.push_back(std::move(rule));
  return "(" + joined(out) + ")";
}

std::vector<std::string> selector_texts(const AclUser& user, const AclCategories* categories) {
  std::vector<std::string> out;
  for (const auto& words : user.selectors) out.push_back(selector_text(words, categories));
  std::sort(out.begin(), out.end());
  return out;
}

bool covers(std::string_view path, std::string_view attribute) {
  return path == attribute || (path.starts_with(attribute) && (path[attribute.size()] == '[' || path[attribute.size()] == '.'));
}

}  // namespace

std::string ordered(const std::string& commands) {
  std::vector<std::string> rules = words_of(commands);
  const auto is_category = [](const std::string& rule) {
    return rule.find('@') == 1 || rule == "allcommands" || rule == "nocommands";
  };
  const auto name = [](const std::string& rule) { return std::string_view(rule).substr(1, rule.find('|') - 1); };
  for (auto from = rules.begin(); from != rules.end();) {
    const auto to = std::find_if(from, rules.end(), is_category);
    std::stable_sort(from, to, [&](const auto& a, const auto& b) { return name(a) < name(b); });
    from = to == rules.end() ? to : to + 1;
  }
  return joined(rules);
}

AclUser parse_acl_line(const std::string& line) {
  const auto words = words_of(common::utf8_text(line));
  if (words.size() < 2 || words[0] != "user") {
    throw sdk::Failure(DRIFTD_CORRUPT, "ACL LIST: expected 'user NAME …', found a line of another form", "acl_user");
  }
  AclUser out;
  out.name = words[1];
  bool inside = false;
  for (std::size_t i = 2; i < words.size(); ++i) {
    std::string word = words[i];
    if (word.front() == '(') {
      out.selectors.emplace_back();
      inside = true;
      word.erase(0, 1);
    }
    const bool last = inside && !word.empty() && word.back() == ')';
    if (last) word.pop_back();
    if (inside && !word.empty()) out.selectors.back().push_back(word);
    if (!inside) take_rule(out, word);
    inside = inside && !last;
  }
  return out;
}

std::set<std::string> categories_of(const AclUser& user) {
  std::set<std::string> out;
  const auto collect = [&](const std::vector<std::string>& rules) {
    for (const auto& rule : rules) {
      if (rule.size() > 2 && rule[1] == '@' && is_command_rule(rule) && rule.substr(2) != "all") out.insert(rule.substr(2));
    }
  };
  collect(user.commands);
  for (const auto& selector : user.selectors) collect(selector);
  return out;
}

sdk::Record acl_record(const AclUser& user, const AclCategories& categories, const std::string& missing) {
  json body = {{"enabled", user.enabled},
               {"flags", user.flags},
               {"keys", normal_keys(user.keys)},
               {"channels", normal_channels(user.channels)},
               {"passwords", user.passwords},
               {"rules", ordered(joined(user.commands))},
               {"selector_rules", selector_texts(user, nullptr)}};
  sdk::Record out;
  out.kind = "acl_user";
  out.id = user.name;
  out.schema_revision = 2;
  if (missing.empty()) {
    body["commands"] = effective_commands(user.commands, categories);
    body["selectors"] = selector_texts(user, &categories);
  } else {
    for (const char* path : {"commands", "selectors", "rules", "selector_rules"}) {
      out.unread.push_back({path, DRIFTD_DENIED, "what the rules allow cannot be told without " + missing});
    }
  }
  out.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  return out;
}

std::vector<std::pair<std::uint32_t, std::string>> equivalent_acl_changes(const std::vector<AclChange>& changes) {
  constexpr std::pair<std::string_view, std::string_view> kPairs[] = {{"rules", "commands"}, {"selector_rules", "selectors"}};
  std::vector<std::pair<std::uint32_t, std::string>> out;
  for (const auto& [words, meaning] : kPairs) {
    const auto touched = [&](std::string_view attribute) {
      return std::any_of(changes.begin(), changes.end(), [&](const auto& c) { return covers(c.path, attribute); });
    };
    const bool reworded = touched(words), other = touched(meaning);
    if (reworded == other) continue;
    for (const auto& change : changes) {
      if (reworded && covers(change.path, words)) out.emplace_back(change.index, "the rules allow the same commands");
      if (other && covers(change.path, meaning)) {
        out.emplace_back(change.index, "the rules are the same; the server's own set of commands is another");
      }
    }
  }
  return out;
}

}  // namespace driftd::redis
