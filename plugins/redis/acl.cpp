// SPDX-License-Identifier: Apache-2.0
#include "redis/acl.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/bounded_json.hpp"
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

/// Splits at blanks only: `+select|a\tb` is one rule.
std::vector<std::string> rule_words(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// Removes the parenthesis from the last word of a selector. Only the last one ends it: a pattern may be called `a)`.
void close(std::vector<std::string>& selector) {
  if (selector.empty() || selector.back().back() != ')') return;
  selector.back().pop_back();
  if (selector.back().empty()) selector.pop_back();
}

bool is_command_rule(const std::string& word) {
  return word.front() == '+' || word.front() == '-' || word == "allcommands" || word == "nocommands";
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

void apply_rule(AclUser& user, const std::string& word) {
  const char first = word.front();
  if (word == "on" || word == "off")
    user.enabled = word == "on";
  else if (first == '#')
    user.passwords.push_back(word.substr(1));
  else if (first == '~' || first == '%' || word == "allkeys")
    user.keys.push_back(word);
  else if (first == '&' || word == "allchannels")
    user.channels.push_back(word);
  else if (is_command_rule(word))
    user.commands.push_back(word);
  else if (word != "resetchannels" && word != "resetkeys")
    user.flags.push_back(word);  // those say: none
}

/// `(~k* resetchannels -@all +get)` in one form: keys, channels, then commands as they are or as what they allow.
std::string selector_text(const std::vector<std::string>& words, const AclCategories* categories) {
  AclUser parts;
  for (const auto& word : words) apply_rule(parts, word);
  std::vector<std::string> out = normal_keys(parts.keys);
  for (const auto& channel : normal_channels(parts.channels)) out.push_back(channel);
  if (categories == nullptr)
    out.push_back(ordered(joined(parts.commands)));
  else
    for (auto& rule : effective_commands(parts.commands, *categories)) out.push_back(std::move(rule));
  return "(" + joined(out) + ")";
}

std::vector<std::string> selector_texts(const AclUser& user, const AclCategories* categories) {
  std::vector<std::string> out;
  for (const auto& words : user.selectors) out.push_back(selector_text(words, categories));
  std::sort(out.begin(), out.end());
  return out;
}

/// Both the rules and what they allow are compared (equivalent_acl_changes).
constexpr std::pair<const char*, const char*> kReadings[] = {{"rules", "commands"}, {"selector_rules", "selectors"}};

/// A user who may write rules may write more than the host accepts. The largest members then become unread. Rules and
/// commands become unread together: if one were missing, a change of the other would look like the same rules in other
/// words.
void fit(sdk::Record& record, json& body) {
  std::vector<std::string> left_out;
  record.body = common::fit_members(body, common::kMaxBody, left_out);
  std::set<std::string> gone(left_out.begin(), left_out.end());
  for (const auto& [words, meaning] : kReadings) {
    if (gone.count(words) + gone.count(meaning) == 0) continue;
    for (const char* one : {words, meaning}) {
      gone.insert(one);
      body.erase(one);
    }
  }
  if (!gone.empty()) record.body = common::json_text(body);
  for (const auto& name : gone) {
    record.unread.push_back(
        {name, DRIFTD_BUDGET, "it is too long to be read: the record would be larger than 4 MiB or 90,000 values"});
  }
}

bool covers(std::string_view path, std::string_view attribute) {
  return path == attribute ||
         (path.starts_with(attribute) && (path[attribute.size()] == '[' || path[attribute.size()] == '.'));
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
  constexpr std::string_view kStart = "user ";
  const std::string text = common::utf8_text(line);
  const auto end = text.find(' ', kStart.size());
  if (!text.starts_with(kStart) || end == std::string::npos) {
    throw sdk::Failure(DRIFTD_CORRUPT, "ACL LIST: expected 'user NAME …', found a line of another form", "acl_user");
  }
  AclUser out;
  out.name = text.substr(kStart.size(), end - kStart.size());  // which may be empty
  for (auto& word : rule_words(text.substr(end))) {
    if (word.front() == '(') {
      out.selectors.emplace_back();
      word.erase(0, 1);
    }
    if (out.selectors.empty())
      apply_rule(out, word);
    else if (!word.empty())
      out.selectors.back().push_back(std::move(word));
  }
  for (auto& words : out.selectors) close(words);
  return out;
}

std::set<std::string> categories_of(const AclUser& user) {
  std::set<std::string> out;
  const auto collect = [&](const std::vector<std::string>& rules) {
    for (const auto& rule : rules) {
      if (rule.size() > 2 && rule[1] == '@' && is_command_rule(rule) && rule.substr(2) != "all")
        out.insert(rule.substr(2));
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
  out.id = user.name.empty() ? "(no name)" : user.name;  // a blank is in no name
  out.schema_revision = 2;
  if (missing.empty()) {
    body["commands"] = effective_commands(user.commands, categories);
    body["selectors"] = selector_texts(user, &categories);
  } else {
    for (const char* path : {"commands", "selectors", "rules", "selector_rules"}) {
      out.unread.push_back({path, DRIFTD_DENIED, "what the rules allow cannot be told without " + missing});
    }
  }
  fit(out, body);
  return out;
}

std::vector<std::pair<std::uint32_t, std::string>> equivalent_acl_changes(const std::vector<AclChange>& changes) {
  std::vector<std::pair<std::uint32_t, std::string>> out;
  for (const auto& [words, meaning] : kReadings) {
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
