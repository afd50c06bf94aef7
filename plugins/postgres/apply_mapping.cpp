// SPDX-License-Identifier: Apache-2.0
#include "postgres/apply_mapping.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "common/apply_steps.hpp"
#include "common/attribute_path.hpp"
#include "common/utf8_text.hpp"
#include "postgres/guc.hpp"

namespace driftd::postgres {
namespace {

using common::CannotSet;
using nlohmann::json;

/// GUCs whose elements the server quotes one by one (GUC_LIST_QUOTE; the same list as in pg_dump).
constexpr std::array kQuotedLists{"local_preload_libraries",  "search_path",      "session_preload_libraries",
                                  "shared_preload_libraries", "temp_tablespaces", "unix_socket_directories"};

/// A name that is shown with an escaped byte cannot be written into a statement in UTF-8.
const std::string& checked(const std::string& name) {
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (common::shows_a_byte(std::string_view(name).substr(at)))
      throw CannotSet("the name `" + name + "` has bytes that are not UTF-8; put it back by hand");
  }
  if (name.find('\0') != std::string::npos) throw CannotSet("a name with a zero byte");
  return name;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

/// `"$user", public` → {`$user`, `public`}
std::vector<std::string> elements(const std::string& list) {
  std::vector<std::string> out;
  std::string one;
  bool quoted = false, any = false;
  const auto end = [&] {
    if (any) out.push_back(one);
    one.clear();
    any = false;
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (c == '"') {
      const bool doubled = quoted && i + 1 < list.size() && list[i + 1] == '"';
      if (doubled) one += list[++i];
      quoted = doubled ? quoted : !quoted;
      any = true;
    } else if (!quoted && c == ',') {
      end();
    } else if (quoted || c != ' ') {
      one += c;
      any = true;
    }
  }
  end();
  return out;
}

std::string keyword(const char* name, bool on) { return (on ? "" : "NO") + std::string(name); }

bool truth(const json& value, const std::string& path) {
  if (!value.is_boolean()) throw CannotSet(path + ": expected true or false");
  return value.get<bool>();
}

std::string whole_number(const json& value, const std::string& path) {
  if (!value.is_number_integer()) throw CannotSet(path + ": expected a whole number");
  return value.dump();
}

/// One option of ALTER ROLE; empty if the attribute is not one.
std::string role_option(const Quote& quote, const std::string& attribute, const json& value) {
  static const std::map<std::string, const char*> kFlags{
      {"superuser", "SUPERUSER"}, {"inherit", "INHERIT"}, {"create_role", "CREATEROLE"},
      {"create_db", "CREATEDB"},  {"login", "LOGIN"},     {"replication", "REPLICATION"},
      {"bypass_rls", "BYPASSRLS"}};
  const auto flag = kFlags.find(attribute);
  if (flag != kFlags.end()) return keyword(flag->second, truth(value, attribute));
  if (attribute == "connection_limit") return "CONNECTION LIMIT " + whole_number(value, attribute);
  if (attribute == "valid_until")
    return "VALID UNTIL " + quote.literal(value.is_null() ? "infinity" : common::scalar_text(value, attribute));
  return {};
}

/// `ALTER ROLE "app"` or the like, SET or RESET.
std::string setting_sql(const Quote& quote, const std::string& of, const std::string& name, const json& value) {
  if (value.is_null()) return of + " RESET " + guc_name(quote, name);
  return of + " SET " + guc_name(quote, name) + " = " + guc_literals(quote, name, common::scalar_text(value, name));
}

Statement setting_statement(const Quote& quote, const std::string& of, const std::string& name,
                            const sdk::Change& change) {
  if (secret_guc(name)) throw CannotSet(change.path + " is a credential, which driftd never sets");
  return {setting_sql(quote, of, name, common::parse_change_value(change.new_value)),
          setting_sql(quote, of, name, common::parse_change_value(change.old_value))};
}

/// A list as a map from `key`. Throws CannotSet if an element comes twice, which no statement can bring about.
std::map<std::string, json> by_key(const json& list, const std::function<std::string(const json&)>& key,
                                   const std::string& path) {
  if (!list.is_array()) throw CannotSet(path + " cannot be unset: expected a list");
  std::map<std::string, json> out;
  for (const auto& one : list) {
    if (!one.is_object()) throw CannotSet(path + ": expected a list of objects");
    if (!out.emplace(key(one), one).second)
      throw CannotSet(path + ": " + key(one) + " comes more than once, from several grantors; put it back by hand");
  }
  return out;
}

std::string member_text(const json& object, const char* name) {
  if (!object.contains(name)) throw CannotSet(std::string("expected the member ") + name);
  return common::scalar_text(object[name], name);
}

std::string membership_sql(const Quote& quote, const std::string& member, const json& one, const json* before,
                           int version) {
  const std::string role = quote.identifier(checked(member_text(one, "role")));
  const auto is = [](const json& from, const char* name) { return from.value(name, false); };
  if (version < 160000) {
    if (before != nullptr && is(*before, "admin") && !is(one, "admin"))
      return "REVOKE ADMIN OPTION FOR " + role + " FROM " + member;
    return "GRANT " + role + " TO " + member + (is(one, "admin") ? " WITH ADMIN OPTION" : "");
  }
  const auto word = [&](const char* name) {
    return one.value(name, true) ? std::string("TRUE") : std::string("FALSE");
  };
  return "GRANT " + role + " TO " + member + " WITH ADMIN " + (is(one, "admin") ? "TRUE" : "FALSE") + ", INHERIT " +
         word("inherit") + ", SET " + word("set");
}

Statements membership_statements(const Quote& quote, const std::string& member, const json& now, const json& wanted,
                                 int version) {
  const auto role = [](const json& one) { return member_text(one, "role"); };
  const auto before = by_key(now, role, "memberships"), after = by_key(wanted, role, "memberships");
  const auto revoke = [&](const std::string& name) {
    return "REVOKE " + quote.identifier(checked(name)) + " FROM " + member;
  };
  Statements out;
  for (const auto& [name, one] : before) {
    if (!after.contains(name)) out.push_back({revoke(name), membership_sql(quote, member, one, nullptr, version)});
  }
  for (const auto& [name, one] : after) {
    const auto was = before.find(name);
    if (was == before.end())
      out.push_back({membership_sql(quote, member, one, nullptr, version), revoke(name)});
    else if (was->second != one)
      out.push_back({membership_sql(quote, member, one, &was->second, version),
                     membership_sql(quote, member, was->second, &one, version)});
  }
  return out;
}

struct Grant {
  std::string grantee, privilege;
  bool grantable = false;
};

Grant grant_of(const json& one) {
  Grant out{member_text(one, "grantee"), member_text(one, "privilege"), one.value("grantable", false)};
  const bool sound =
      !out.privilege.empty() && out.privilege.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ ") == std::string::npos;
  if (!sound) throw CannotSet("grants: `" + out.privilege + "` is not a privilege");
  return out;
}

std::string grantee_sql(const Quote& quote, const std::string& name) {
  return name == "PUBLIC" ? name : quote.identifier(checked(name));
}

std::string grant_sql(const Quote& quote, const std::string& object, const Grant& grant) {
  return "GRANT " + grant.privilege + " ON " + object + " TO " + grantee_sql(quote, grant.grantee) +
         (grant.grantable ? " WITH GRANT OPTION" : "");
}

std::string revoke_sql(const Quote& quote, const std::string& object, const Grant& grant, bool option_only) {
  return std::string("REVOKE ") + (option_only ? "GRANT OPTION FOR " : "") + grant.privilege + " ON " + object +
         " FROM " + grantee_sql(quote, grant.grantee);
}

}  // namespace

std::string guc_name(const Quote& quote, const std::string& name) {
  std::string out;
  for (std::size_t from = 0; from <= name.size();) {
    const auto end = std::min(name.find('.', from), name.size());
    out += (from == 0 ? "" : ".") + quote.identifier(checked(name.substr(from, end - from)));
    from = end + 1;
  }
  return out;
}

std::string guc_literals(const Quote& quote, const std::string& name, const std::string& value) {
  const bool list = std::find(kQuotedLists.begin(), kQuotedLists.end(), lower(name)) != kQuotedLists.end();
  const auto names = list ? elements(checked(value)) : std::vector<std::string>{};
  if (names.empty()) return quote.literal(checked(value));
  std::string out;
  for (const auto& one : names) out += (out.empty() ? "" : ", ") + quote.literal(one);
  return out;
}

std::string guc_text(const std::string& attribute, const json& value) {
  if (value.is_null()) throw CannotSet(attribute + " cannot be unset: a setting always has a value");
  if (attribute == "flag" && value.is_boolean()) return value.get<bool>() ? "on" : "off";
  const bool whole = value.is_number_unsigned();  // a negative number is a word of the setting, without a unit
  if (attribute == "bytes") return common::scalar_text(value, attribute) + (whole ? "B" : "");
  if (attribute == "duration") return common::scalar_text(value, attribute) + (whole ? "ms" : "");
  if (attribute == "flag" || attribute == "number" || attribute == "value")
    return common::scalar_text(value, attribute);
  throw CannotSet(attribute + " cannot be set: a setting has no such attribute");
}

Statements grant_statements(const Quote& quote, const std::string& object, const json& now, const json& wanted) {
  const auto key = [](const json& one) { return member_text(one, "grantee") + " " + member_text(one, "privilege"); };
  const auto before = by_key(now, key, "grants"), after = by_key(wanted, key, "grants");
  Statements out;
  for (const auto& [name, one] : before) {
    const Grant was = grant_of(one);
    if (!after.contains(name)) out.push_back({revoke_sql(quote, object, was, false), grant_sql(quote, object, was)});
  }
  for (const auto& [name, one] : after) {
    const Grant grant = grant_of(one);
    const auto was = before.find(name);
    if (was == before.end()) {
      out.push_back({grant_sql(quote, object, grant), revoke_sql(quote, object, grant, false)});
    } else if (grant_of(was->second).grantable != grant.grantable) {
      const std::string less = revoke_sql(quote, object, grant, true);
      Grant more = grant;
      more.grantable = true;
      const std::string with = grant_sql(quote, object, more);
      out.push_back(grant.grantable ? Statement{with, less} : Statement{less, with});
    }
  }
  return out;
}

Statements role_statements(const Quote& quote, const sdk::Apply& request, const json& now, int version) {
  const std::string member = quote.identifier(checked(request.id.id)), role = "ALTER ROLE " + member;
  std::string options, undo;
  Statements out;
  for (const auto& change : request.changes) {
    const auto names = common::member_names(change.path);
    const json value = common::parse_change_value(change.new_value);
    if (!names) throw CannotSet(change.path + " cannot be set");
    const std::string& first = names->front();
    if (first == "verifier" || first == "password_type")
      throw CannotSet(change.path + " follows from the password, which driftd never sets");
    if (first == "memberships" && names->size() == 1) {
      for (auto& one : membership_statements(quote, member, now.value("memberships", json::array()), value, version))
        out.push_back(std::move(one));
    } else if (first == "settings" && names->size() == 2) {
      out.push_back(setting_statement(quote, role, (*names)[1], change));
    } else if (first == "database_settings" && names->size() == 3) {
      const std::string of = role + " IN DATABASE " + quote.identifier(checked((*names)[1]));
      out.push_back(setting_statement(quote, of, (*names)[2], change));
    } else {
      if (first == "valid_until" && value.is_null())
        throw CannotSet(
            "valid_until cannot be unset: PostgreSQL only has 'infinity', which means the same; set it and "
            "approve the drift");
      const std::string option = names->size() == 1 ? role_option(quote, first, value) : std::string();
      if (option.empty()) throw CannotSet(change.path + " cannot be set: a role has no such attribute");
      options += " " + option;
      undo += " " + role_option(quote, first, common::parse_change_value(change.old_value));
    }
  }
  if (!options.empty()) out.insert(out.begin(), {role + options, role + undo});
  return out;
}

Statements database_statements(const Quote& quote, const sdk::Apply& request, const json& now) {
  const std::string name = quote.identifier(checked(request.id.id)), database = "ALTER DATABASE " + name;
  Statements out;
  json grants = now.value("grants", json::array());
  const json* wanted_grants = nullptr;
  json held;
  for (const auto& change : request.changes) {
    const auto names = common::member_names(change.path);
    const json value = common::parse_change_value(change.new_value);
    const json old = common::parse_change_value(change.old_value);
    const std::string first = names ? names->front() : std::string();
    const auto both = [&](const std::string& before, const std::function<std::string(const json&)>& text) {
      out.push_back({database + before + text(value), database + before + text(old)});
    };
    if (first == "settings" && names->size() == 2) {
      out.push_back(setting_statement(quote, database, (*names)[1], change));
    } else if (change.path == "owner") {
      const auto owner = [&](const json& one) { return quote.identifier(checked(common::scalar_text(one, "owner"))); };
      out.insert(out.begin(), {database + " OWNER TO " + owner(value), database + " OWNER TO " + owner(old)});
      for (auto& one : grants) {  // the server moves the owner's own rights with it
        if (one.value("grantee", "") == common::scalar_text(old, "owner")) one["grantee"] = value;
      }
    } else if (change.path == "connection_limit") {
      both(" CONNECTION LIMIT ", [&](const json& one) { return whole_number(one, change.path); });
    } else if (change.path == "is_template" || change.path == "allow_connections") {
      both(change.path == "is_template" ? " IS_TEMPLATE " : " ALLOW_CONNECTIONS ",
           [&](const json& one) { return std::string(truth(one, change.path) ? "true" : "false"); });
    } else if (change.path == "grants") {
      held = value;
      wanted_grants = &held;
    } else {
      throw CannotSet(change.path + " cannot be set: it is fixed when the database is created, or only moved by hand");
    }
  }
  if (wanted_grants == nullptr) return out;
  std::sort(grants.begin(), grants.end());
  grants.erase(std::unique(grants.begin(), grants.end()), grants.end());
  for (auto& one : grant_statements(quote, "DATABASE " + name, grants, *wanted_grants)) out.push_back(std::move(one));
  return out;
}

}  // namespace driftd::postgres
