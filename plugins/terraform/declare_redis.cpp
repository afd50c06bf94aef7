// SPDX-License-Identifier: Apache-2.0
// ACL users as three Terraform providers keep them. What their rules allow depends on the server's own categories:
// commands are not declared.
#include <string.h>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "common/checked_digest.hpp"
#include "terraform/declare_custom.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

/// Patterns in the normal form that our provider shows: `~p` may be read and written, `%R~p` read, `%W~p` written.
class Keys {
 public:
  void add(const std::string& pattern, bool read, bool write) {
    auto& may = may_[pattern];
    may.first |= read;
    may.second |= write;
  }
  /// `~p`, `%RW~p`, `allkeys`; false: another word.
  bool add_word(const std::string& word) {
    if (word == "allkeys") return add("*", true, true), true;
    const auto tilde = word.find('~');
    const std::string of = word.substr(0, std::min(tilde, word.size()));
    const bool known = tilde != std::string::npos &&
                       (of.empty() || (of[0] == '%' && of.find_first_not_of("RW", 1) == std::string::npos));
    if (known)
      add(word.substr(tilde + 1), of.empty() || of.find('R') != std::string::npos,
          of.empty() || of.find('W') != std::string::npos);
    return known;
  }
  json list() const {
    const auto all = may_.find("*");
    if (all != may_.end() && all->second.first && all->second.second) return json::array({"~*"});
    json out = json::array();
    for (const auto& [pattern, may] : may_)
      out.push_back((may.first && may.second ? "~" : may.first ? "%R~" : "%W~") + pattern);
    return out;
  }

 private:
  std::map<std::string, std::pair<bool, bool>> may_;  // pattern → read, write
};

json channels_of(const std::set<std::string>& patterns) {
  return patterns.contains("&*") ? json::array({"&*"}) : json(patterns);
}

std::vector<std::string> texts_of(const json& list) {
  std::vector<std::string> out;
  for (const auto& each : list.is_array() ? list : json::array()) {
    if (each.is_string()) out.push_back(each.get<std::string>());
  }
  return out;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

void put_enabled(const CustomMapping& of) {
  if (const json& enabled = member(of.attributes, "enabled"); enabled.is_boolean()) of.out.body["enabled"] = enabled;
}

}  // namespace

std::string redis_digest(std::string password) {
  unsigned char sum[EVP_MAX_MD_SIZE];
  const int computed = EVP_Digest(password.data(), password.size(), sum, nullptr, EVP_sha256(), nullptr);
  explicit_bzero(password.data(), password.size());
  common::require_digest(computed == 1);
  std::string hex;
  for (int i = 0; i < 32; ++i) {
    hex += "0123456789abcdef"[sum[i] >> 4];
    hex += "0123456789abcdef"[sum[i] & 15];
  }
  return hex;
}

bool redis_user(const CustomMapping& of) {
  std::string password = text_of(of.attributes, "password");
  if (password.empty()) return true;
  of.out.body["passwords"] = json::array({redis_digest(std::move(password))});
  of.out.sensitive.push_back("passwords");
  return true;
}

/// Lists without prefixes. One that is null may stand for all keys (its default) or for none (a read): it declares
/// nothing.
bool redis_acl_user(const CustomMapping& of) {
  put_enabled(of);
  if (const auto keys = texts_of(member(of.attributes, "keys")); !keys.empty()) {
    Keys all;
    for (const auto& pattern : keys) all.add(pattern, true, true);
    for (const auto& pattern : texts_of(member(of.attributes, "readonly_keys"))) all.add(pattern, true, false);
    for (const auto& pattern : texts_of(member(of.attributes, "writeonly_keys"))) all.add(pattern, false, true);
    of.out.body["keys"] = all.list();
  }
  std::set<std::string> channels;
  for (const auto& pattern : texts_of(member(of.attributes, "channels"))) channels.insert("&" + pattern);
  if (!channels.empty()) of.out.body["channels"] = channels_of(channels);
  return true;
}

/// Texts of words as ACL SETUSER takes them; Redis 6 answers its provider without prefixes, which tells too little.
bool redisacl_user(const CustomMapping& of) {
  put_enabled(of);
  Keys keys;
  bool known = true;
  const auto patterns = words_of(text_of(of.attributes, "keys"));
  for (const auto& word : patterns) known = known && keys.add_word(word);
  if (known && !patterns.empty()) of.out.body["keys"] = keys.list();
  std::set<std::string> channels;
  known = true;
  for (const auto& word : words_of(text_of(of.attributes, "channels"))) {
    known = known && (word[0] == '&' || word == "allchannels");
    channels.insert(word == "allchannels" ? "&*" : word);
  }
  if (known && !channels.empty()) of.out.body["channels"] = channels_of(channels);
  json digests = json::array();
  for (auto& password : texts_of(member(of.attributes, "passwords")))
    digests.push_back(redis_digest(std::move(password)));
  if (digests.empty()) return true;
  of.out.body["passwords"] = std::move(digests);
  of.out.sensitive.push_back("passwords");
  return true;
}

}  // namespace driftd::terraform
