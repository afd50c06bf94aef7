// SPDX-License-Identifier: Apache-2.0
#include "redis/config.hpp"

#include <fnmatch.h>
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/utf8_text.hpp"

namespace driftd::redis {
namespace {

using nlohmann::json;

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

/// `3600 1 300 100` → `["3600 1", "300 100"]`.
json save_points(const std::string& value) {
  const auto words = split_words(value);
  json out = json::array();
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) out.push_back(words[i] + " " + words[i + 1]);
  return out;
}

/// redis.conf: `A` is an alias of all classes but `m` (misses) and `n` (new keys).
json event_flags(const std::string& value) {
  std::string flags;
  for (const char c : value) flags += c == 'A' ? std::string("g$lshzxetd") : std::string(1, c);
  std::sort(flags.begin(), flags.end());
  flags.erase(std::unique(flags.begin(), flags.end()), flags.end());
  json out = json::array();
  for (const char c : flags) out.push_back(std::string(1, c));
  return out;
}

/// `normal 0 0 0 slave 268435456 67108864 60 …`
json buffer_limits(const std::string& value) {
  const auto words = split_words(value);
  json out = json::object();
  for (std::size_t i = 0; i + 3 < words.size(); i += 4) {
    const std::string of = words[i] == "slave" ? "replica" : words[i];
    out[of] = {{"hard", words[i + 1]}, {"soft", words[i + 2]}, {"seconds", words[i + 3]}};
  }
  return out;
}

bool is_list(const std::string& name) {
  return name == "bind" || name == "oom-score-adj-values" || name == "tls-protocols" ||
         name == "latency-tracking-info-percentiles";
}

/// Of any bytes, also of those that are no text.
json typed(const std::string& name, const std::string& given) {
  const std::string value = common::utf8_text(given);
  if (name == "save") return save_points(value);
  if (name == "notify-keyspace-events") return event_flags(value);
  if (name == "client-output-buffer-limit") return buffer_limits(value);
  if (is_list(name)) return split_words(value);
  return value;
}

/// The newer name of a directive that has two; empty: none.
std::string modern_name(const std::string& name) {
  if (name == "lua-time-limit") return "busy-reply-threshold";
  for (const auto& [old, modern] : {std::pair{"slave", "replica"}, {"ziplist", "listpack"}}) {
    if (const auto at = name.find(old); at != std::string::npos) {
      return std::string(name).replace(at, std::string(old).size(), modern);
    }
  }
  return {};
}

bool contains(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::string config_value(const std::string& name, const std::string& value) { return typed(name, value).dump(); }

std::string config_object(const Config& config) {
  json out = json::object();
  for (const auto& [name, value] : config) {
    if (name == "replicaof" || name == "slaveof" || config.count(modern_name(name)) > 0) continue;
    out[common::utf8_text(name)] = typed(name, value);
  }
  return out.dump();
}

bool secret_directive(const std::string& name) {
  const std::string low = lower(name);
  return contains(low, "pass") || contains(low, "secret") || contains(low, "token") || contains(low, "api-key") ||
         low.ends_with("auth");
}

std::string persistence(const Config& config) {
  const auto save = config.find("save"), aof = config.find("appendonly");
  if (save == config.end() || aof == config.end()) return {};
  const bool rdb = !split_words(save->second).empty(), appends = aof->second == "yes";
  return rdb && appends ? "rdb+aof" : rdb ? "rdb" : appends ? "aof" : "none";
}

bool matches_pattern(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) {
    return ::fnmatch(lower(pattern).c_str(), lower(name).c_str(), 0) == 0;
  });
}

}  // namespace driftd::redis
