// SPDX-License-Identifier: Apache-2.0
// What of a resource may be put back, and what stands between two states of it. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "keycloak/settings.hpp"

namespace driftd::keycloak {

/// What Keycloak shows in place of a secret, and takes as "keep it".
inline constexpr std::string_view kMask = "**********";

/// One value that differs. A list is one value, unless it is a list of as many objects as before.
struct Leaf {
  std::vector<std::string> names;  ///< members down to it; an element of a list is `[3]`
  nlohmann::json now, wanted;      ///< null: there is none
  /// The path as the schema writes it: `attributes.client.secret`, `executions[*].config.secret`.
  std::string pattern() const;
  /// The path as an operator reads it: `attributes["client.secret"]`.
  std::string text() const;
};
std::vector<Leaf> leaves_between(const nlohmann::json& now, const nlohmann::json& wanted);

/// What the schema of schema.json says of attributes.
class AttributeRules {
 public:
  /// `kinds` as in schema.json: kind → document.
  explicit AttributeRules(const nlohmann::json& kinds) : kinds_(kinds) {}
  /// Returns true if the order of this attribute's list does not count. `path` is one of the host's.
  bool is_set(const std::string& kind, const std::string& path) const;
  bool is_credential(const std::string& kind, const std::string& pattern) const;

 private:
  /// Returns the rules of the attribute: of its own name, or of the longest glob that fits it; empty without any.
  nlohmann::json rule(const std::string& kind, const std::string& pattern) const;
  const nlohmann::json kinds_;
};

/// How resources of one kind are written.
struct KindRules {
  std::string_view kind{};
  std::string_view right{};  ///< role that allows it
  /// A PUT takes the changed members alone and leaves the others; else it takes the whole representation.
  bool partial = false;
  bool unsets = true;                        ///< a member that is left out or null disappears
  bool merges_maps = false;                  ///< a PUT keeps what `attributes` leaves out; null takes it away
  std::vector<std::string_view> fixed{};     ///< members that are the identity, or that only Keycloak sets
  std::vector<std::string_view> optional{};  ///< members that may be absent and can be set all the same
  std::vector<std::string_view> apart{};     ///< members that have requests of their own
};
/// Returns nullptr for a kind that there is not.
const KindRules* rules_of(std::string_view kind);

/// Returns why these values may not be put back; empty if they may. `body` is that of the record as it is now.
std::string forbidden(const KindRules& rules, const AttributeRules& attributes, const nlohmann::json& body,
                      const std::vector<Leaf>& leaves, bool may_turn_on_events);

/// Returns what a PUT sends: `now` is the representation as Keycloak has it, `members` those that change (null: to be
/// taken away).
nlohmann::json put_body(const KindRules& rules, nlohmann::json now, const nlohmann::json& members);

/// Returns `kcadm.sh update PATH -r REALM` with the options that make the change, as an operator would type it. `path`
/// begins with a slash; empty: the realm itself. `merges_maps` as in KindRules.
std::string update_command(const std::string& realm, const std::string& path, const std::vector<Leaf>& leaves,
                           bool merges_maps = false);
/// `kcadm.sh VERB PATH -r REALM -b BODY`; without a body if that is null.
std::string body_command(const std::string& verb, const std::string& realm, const std::string& path,
                         const nlohmann::json& body);

/// Returns a member of an object; null if there is none.
nlohmann::json member_of(const nlohmann::json& from, const std::string& name);

/// Returns Keycloak's own words from an answer that refuses; empty if there are none.
std::string message_of(const nlohmann::json& answer);

}  // namespace driftd::keycloak
