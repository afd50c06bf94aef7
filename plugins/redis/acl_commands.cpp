// SPDX-License-Identifier: Apache-2.0
#include "redis/acl.hpp"
#include "redis/acl_keys.hpp"

namespace driftd::redis {
namespace {

/// What a sequence of command rules allows, rule by rule as the server does it.
class Allowed {
 public:
  explicit Allowed(const AclCategories& categories) : categories_(categories) {
    for (const auto& [name, commands] : categories) {
      for (const auto& command : commands) containers_[command.substr(0, command.find('|'))].insert(command);
    }
    // Redis 7 lists `config` beside `config|get`; only the latter can be run
    for (auto& [container, leaves] : containers_) {
      if (leaves.size() > 1) leaves.erase(container);
    }
  }

  void apply(const std::string& rule) {
    if (rule == "allcommands" || rule == "+@all") return reset(true);
    if (rule == "nocommands" || rule == "-@all") return reset(false);
    const bool allow = rule.front() == '+';
    const std::string name = rule.substr(1);
    if (!name.empty() && name.front() == '@') return category(name.substr(1), allow);
    command(name, allow);
  }

  std::vector<std::string> rules() const {
    std::set<std::string> out;
    const std::string sign = everything_ ? "-" : "+";
    for (const auto& [container, leaves] : containers_) {
      std::set<std::string> apart;
      for (const auto& leaf : leaves) {
        if (deviates_.count(leaf) > 0) apart.insert(sign + leaf);
      }
      if (apart.size() == leaves.size())
        out.insert(sign + container);
      else
        out.merge(apart);
    }
    for (const auto& [command, arguments] : first_arguments_) {
      if (allows(command)) continue;
      for (const auto& argument : arguments) out.insert("+" + command + "|" + argument);
    }
    for (const auto& rule : unknown_) out.insert(rule);
    std::vector<std::string> list{everything_ ? "+@all" : "-@all"};
    list.insert(list.end(), out.begin(), out.end());
    return list;
  }

 private:
  bool allows(const std::string& leaf) const { return (deviates_.count(leaf) > 0) != everything_; }

  void reset(bool everything) {
    everything_ = everything;
    deviates_.clear();
    first_arguments_.clear();
    unknown_.clear();
  }
  void set(const std::string& leaf, bool allow) {
    if (allow == everything_)
      deviates_.erase(leaf);
    else
      deviates_.insert(leaf);
    first_arguments_.erase(leaf);
  }
  void category(const std::string& name, bool allow) {
    const auto found = categories_.find(name);
    if (found == categories_.end()) return;
    for (const auto& leaf : found->second) set(leaf, allow);
  }
  void command(const std::string& name, bool allow) {
    const auto bar = name.find('|');
    const auto found = containers_.find(name.substr(0, bar));
    if (found == containers_.end()) {  // of a module that is not loaded
      unknown_.erase((allow ? "-" : "+") + name);
      unknown_.insert((allow ? "+" : "-") + name);
    } else if (bar == std::string::npos) {
      for (const auto& leaf : found->second) set(leaf, allow);
    } else if (found->second.count(name) > 0) {
      set(name, allow);
    } else if (allow) {
      first_arguments_[found->first].insert(name.substr(bar + 1));
    }
  }

  const AclCategories& categories_;
  std::map<std::string, std::set<std::string>> containers_;       ///< `config` → `config|get` …; `get` → `get`
  std::map<std::string, std::set<std::string>> first_arguments_;  ///< `select` → `0`
  std::set<std::string> deviates_, unknown_;
  bool everything_ = false;
};

}  // namespace

std::vector<std::string> effective_commands(const std::vector<std::string>& rules, const AclCategories& categories) {
  Allowed allowed(categories);
  for (const auto& rule : rules) allowed.apply(rule);
  return allowed.rules();
}

std::vector<std::string> normal_keys(const std::vector<std::string>& patterns) {
  std::map<std::string, std::pair<bool, bool>> out;  // pattern → read, write
  for (const auto& word : patterns) {
    const auto tilde = word.find('~');
    if (tilde == std::string::npos) {
      out["*"] = {true, true};  // allkeys
      continue;
    }
    auto& [read, write] = out[word.substr(tilde + 1)];
    const std::string of = word.substr(0, tilde);
    read |= of.find('R') != std::string::npos || of.empty();
    write |= of.find('W') != std::string::npos || of.empty();
  }
  if (const auto all = out.find("*"); all != out.end() && all->second.first && all->second.second) return {"~*"};
  std::vector<std::string> list;
  for (const auto& [pattern, may] : out) {
    list.push_back((may.first && may.second ? "~" : may.first ? "%R~" : "%W~") + pattern);
  }
  return list;
}

std::vector<std::string> normal_channels(const std::vector<std::string>& patterns) {
  std::set<std::string> out;
  for (const auto& word : patterns) out.insert(word == "allchannels" ? "&*" : word);
  if (out.count("&*") > 0) return {"&*"};
  return {out.begin(), out.end()};
}

}  // namespace driftd::redis
