// SPDX-License-Identifier: Apache-2.0
#include "keycloak/apply_rules.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "common/attribute_path.hpp"
#include "common/shell_text.hpp"
#include "common/short_text.hpp"
#include "driftd/sdk/scope.hpp"
#include "keycloak/mapping.hpp"

namespace driftd::keycloak {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

constexpr std::size_t kMaxMessage = 500;

bool is_index(const std::string& name) { return name.starts_with('['); }

bool is_list_of_objects(const json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const json& each) { return each.is_object(); });
}

void add_leaves(const Names& names, const json& now, const json& wanted, std::vector<Leaf>& out) {
  if (now == wanted) return;
  const auto below = [&](std::string name) {
    Names all = names;
    all.push_back(std::move(name));
    return all;
  };
  // An object that comes or goes whole is looked at by members, too: one of them may be a secret.
  if ((now.is_object() || now.is_null()) && (wanted.is_object() || wanted.is_null())) {
    std::set<std::string> members;
    for (const auto* side : {&now, &wanted}) {
      if (!side->is_object()) continue;
      for (const auto& [name, value] : side->items()) members.insert(name);
    }
    for (const auto& name : members)
      add_leaves(below(name), now.is_object() ? member_of(now, name) : json(),
                 wanted.is_object() ? member_of(wanted, name) : json(), out);
    if (!members.empty()) return;
  }
  if (is_list_of_objects(now) && is_list_of_objects(wanted) && now.size() == wanted.size()) {
    for (std::size_t i = 0; i < now.size(); ++i)
      add_leaves(below("[" + std::to_string(i) + "]"), now[i], wanted[i], out);
    return;
  }
  out.push_back({names, now, wanted});
}

template <class List>
bool holds(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// Returns true if a mask or the digest of a secret is or is in the value.
bool is_withheld(const json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().find(kMask) != std::string::npos;
  if (value.is_object() && value.contains("$hmac")) return true;
  return value.is_structured() && std::any_of(value.begin(), value.end(), is_withheld);
}

bool turns_events_on(const Leaf& leaf) { return leaf.wanted == true; }

/// Returns why a switch of admin events may not be put back.
std::string forbidden_switch(const Leaf& leaf, bool may_turn_on_events) {
  if (!turns_events_on(leaf) && leaf.names.front() == "adminEventsEnabled")
    return "adminEventsEnabled is never turned off: driftd would be blind to the realm";
  if (turns_events_on(leaf) && !may_turn_on_events) {
    return leaf.names.front() +
           " is turned on only with consent, because Keycloak then stores events: set "
           "settings.apply.turn_on_admin_events to true";
  }
  return {};
}

/// `attributes."a.b"`
std::string option_name(const Names& names) {
  std::string out;
  for (const auto& name : names) {
    const bool plain = name.find_first_of(".\"[]= ") == std::string::npos;
    out += (out.empty() ? "" : ".") + (plain ? name : "\"" + name + "\"");
  }
  return out;
}

std::string resource_words(const std::string& realm, const std::string& path) {
  if (path.empty()) return common::shell_word("realms/" + realm);
  return common::shell_word(path.substr(1)) + " -r " + common::shell_word(realm);
}

}  // namespace

json member_of(const json& from, const std::string& name) {
  const auto found = from.find(name);
  return found == from.end() ? json() : *found;
}

std::string Leaf::pattern() const {
  std::string out;
  for (const auto& name : names) {
    if (is_index(name))
      out += "[*]";
    else
      out += (out.empty() ? "" : ".") + name;
  }
  return out;
}

std::string Leaf::text() const {
  std::string out;
  for (const auto& name : names) {
    const bool plain = name.find_first_of(".\"[] ") == std::string::npos;
    if (is_index(name))
      out += name;
    else
      out += plain ? (out.empty() ? "" : ".") + name : "[\"" + name + "\"]";
  }
  return out;
}

std::vector<Leaf> leaves_between(const json& now, const json& wanted) {
  std::vector<Leaf> out;
  add_leaves({}, now, wanted, out);
  return out;
}

json AttributeRules::rule(const std::string& kind, const std::string& pattern) const {
  const json attributes = member_of(member_of(kinds_, kind), "attributes");
  if (const json own = member_of(attributes, pattern); own.is_object()) return own;
  std::size_t longest = 0;
  json out = json::object();
  for (const auto& [glob, each] : attributes.items()) {
    if (glob.size() <= longest || glob.find('*') == std::string::npos || !sdk::glob_match(glob, pattern)) continue;
    longest = glob.size();
    out = each;
  }
  return out;
}

bool AttributeRules::is_set(const std::string& kind, const std::string& path) const {
  std::string pattern;
  for (const auto& step : common::parse_attribute_path(path)) {
    const bool member = step.kind == common::PathStep::Kind::member;
    pattern += member ? (pattern.empty() ? "" : ".") + step.name : "[*]";
  }
  return text_of(rule(kind, pattern), "collection") == "set";
}

bool AttributeRules::is_credential(const std::string& kind, const std::string& pattern) const {
  const json found = rule(kind, pattern);
  return text_of(found, "class") == "credential" || member_of(found, "sensitive") == true;
}

const KindRules* rules_of(std::string_view kind) {
  static const std::vector<KindRules> kRules{
      {.kind = "realm",
       .right = "manage-realm",
       .partial = true,
       .unsets = false,
       .fixed = {"realm", "id", "defaultRole", "keycloakVersion", "requiredCredentials", "notBefore"},
       .optional = {"displayName", "displayNameHtml", "loginTheme", "accountTheme", "adminTheme", "emailTheme",
                    "defaultLocale", "passwordPolicy", "supportedLocales", "defaultGroups"},
       .apart = {"defaultDefaultClientScopes", "defaultOptionalClientScopes"}},
      {.kind = "client",
       .right = "manage-clients",
       .partial = true,
       .unsets = false,
       .merges_maps = true,
       .fixed = {"id", "clientId", "secret", "registrationAccessToken", "notBefore"},
       .optional = {"name", "description", "type", "rootUrl", "baseUrl", "adminUrl"},
       .apart = {"protocolMappers", "defaultClientScopes", "optionalClientScopes"}},
      {.kind = "client_scope",
       .right = "manage-clients",
       .unsets = false,
       .merges_maps = true,
       .fixed = {"id", "name"},
       .optional = {"description"},
       .apart = {"protocolMappers"}},
      {.kind = "role",
       .right = "manage-realm",
       .fixed = {"id", "name", "clientRole", "containerId"},
       .optional = {"description"},
       .apart = {"composites", "composite"}},
      {.kind = "group",
       .right = "manage-users",
       .fixed = {"id", "name"},
       .optional = {"description"},
       .apart = {"realmRoles", "clientRoles"}},
      {.kind = "identity_provider",
       .right = "manage-identity-providers",
       .fixed = {"internalId", "alias", "providerId", "types"},
       .optional = {"displayName", "firstBrokerLoginFlowAlias", "postBrokerLoginFlowAlias", "organizationId"},
       .apart = {"mappers"}},
      {.kind = "authentication_flow",
       .right = "manage-realm",
       .fixed = {"id", "alias", "providerId", "topLevel", "builtIn"},
       .optional = {"description"},
       .apart = {"executions"}},
      {.kind = "required_action", .right = "manage-realm", .fixed = {"alias", "providerId"}},
      {.kind = "component",
       .right = "manage-realm",
       .fixed = {"id", "providerId", "providerType", "parentId"},
       .optional = {"subType"}}};
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const auto& each) { return each.kind == kind; });
  return found == kRules.end() ? nullptr : &*found;
}

std::string forbidden(const KindRules& rules, const AttributeRules& attributes, const json& body,
                      const std::vector<Leaf>& leaves, bool may_turn_on_events) {
  if (rules.kind == "authentication_flow" && member_of(body, "builtIn") == true)
    return "the flow is built in, and driftd does not change those; copy it in Keycloak and use the copy";
  for (const auto& leaf : leaves) {
    const std::string& member = leaf.names.front();
    if (attributes.is_credential(std::string(rules.kind), leaf.pattern()))
      return leaf.text() + " is a credential, and credentials are never put back";
    if (is_withheld(leaf.now) || is_withheld(leaf.wanted))
      return leaf.text() + " is or holds a secret that is not known, and secrets are never put back";
    if (holds(rules.fixed, member)) return member + " cannot be set: it is what Keycloak made the resource with";
    if (member == "adminEventsEnabled" || member == "adminEventsDetailsEnabled") {
      if (auto why = forbidden_switch(leaf, may_turn_on_events); !why.empty()) return why;
    }
    const bool known = body.contains(member) || holds(rules.optional, member) || holds(rules.apart, member);
    if (!known) return member + " is no attribute that Keycloak lets one set";
    if (leaf.names.size() == 1 && leaf.wanted.is_null() && !rules.unsets && !holds(rules.apart, member))
      return member + " cannot be unset by Keycloak's admin API, only emptied";
  }
  return {};
}

json put_body(const KindRules& rules, json now, const json& members) {
  json out = rules.partial ? json::object() : now;
  if (!rules.partial) {
    for (const auto& name : rules.apart) out.erase(std::string(name));
  }
  for (const auto& [name, value] : members.items()) {
    if (value.is_null()) {
      out.erase(name);
      continue;
    }
    json& to = out[name] = value;
    const json before = member_of(now, name);
    if (!rules.merges_maps || !to.is_object() || !before.is_object()) continue;
    for (const auto& [key, old] : before.items()) {
      if (!to.contains(key)) to[key] = nullptr;
    }
  }
  return out;
}

std::string update_command(const std::string& realm, const std::string& path, const std::vector<Leaf>& leaves,
                           bool merges_maps) {
  std::string out = "kcadm.sh update " + resource_words(realm, path);
  for (const auto& leaf : leaves) {
    if (leaf.wanted.is_null() && !merges_maps) {
      out += " -d " + common::shell_word(option_name(leaf.names));
      continue;
    }
    const std::string value = leaf.wanted.dump(-1, ' ', false, json::error_handler_t::replace);
    out += " -s " + common::shell_word(option_name(leaf.names) + "=" + value);
  }
  return out;
}

std::string body_command(const std::string& verb, const std::string& realm, const std::string& path, const json& body) {
  std::string out = "kcadm.sh " + verb + " " + resource_words(realm, path);
  if (!body.is_null()) out += " -b " + common::shell_word(body.dump(-1, ' ', false, json::error_handler_t::replace));
  return out;
}

std::string message_of(const json& answer) {
  if (!answer.is_object()) return {};
  std::string out = text_of(answer, "errorMessage");
  for (const char* name : {"error", "error_description"}) {
    const std::string text = text_of(answer, name);
    if (!text.empty() && text_of(answer, "errorMessage").empty()) out += (out.empty() ? "" : ": ") + text;
  }
  for (const auto& each : answer.value("errors", json::array())) {
    if (const std::string text = message_of(each); !text.empty()) out += (out.empty() ? "" : "; ") + text;
  }
  return common::short_text(out, kMaxMessage);
}

}  // namespace driftd::keycloak
