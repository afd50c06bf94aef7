// SPDX-License-Identifier: Apache-2.0
// Resources of cyrilgdn/postgresql beyond a table of attributes.
#include "terraform/declare_custom.hpp"

namespace driftd::terraform {
namespace {

using nlohmann::json;

/// `2030-01-01 00:00:00+00` as our provider shows it: `2030-01-01T00:00:00.000000Z`. Another zone or form: empty.
std::string utc(const std::string& text) {
  const std::string tail = text.size() > 19 ? text.substr(19) : "";
  const bool form = text.size() >= 19 && text[4] == '-' && (text[10] == ' ' || text[10] == 'T') && text[13] == ':';
  if (!form || (tail != "+00" && tail != "Z" && tail != "+00:00")) return {};
  return text.substr(0, 10) + "T" + text.substr(11, 8) + ".000000Z";
}

bool put_list(const CustomMapping& of, const char* from, const char* to) {
  const json& list = member(of.attributes, from);
  if (list.is_array() && !list.empty()) of.out.body[to] = list;
  return true;
}

}  // namespace

bool postgres_role(const CustomMapping& of) {
  // "infinity" is also what the provider writes for a role that has no limit at all
  if (const std::string until = utc(text_of(of.attributes, "valid_until")); !until.empty())
    of.out.body["valid_until"] = until;
  for (const char* setting : {"statement_timeout", "idle_in_transaction_session_timeout"}) {
    const json& value = member(of.attributes, setting);
    if (value.is_number_integer() && value != 0) of.out.body["settings"][setting] = value.dump();
  }
  if (const std::string role = text_of(of.attributes, "assume_role"); !role.empty())
    of.out.body["settings"]["role"] = role;
  return true;
}

bool in_database(const CustomMapping& of) {
  const std::string database = text_of(of.attributes, "database"), name = text_of(of.attributes, "name");
  if (of.rule.database.empty()) {
    of.why = "driftd sees extensions and schemas of some databases: name them in declares[].database";
    return false;
  }
  if (!sdk::glob_match(of.rule.database, database)) {
    of.why.clear();  // the rule is for other databases, which is not a fault
    return false;
  }
  of.out.id = name.empty() ? "" : database + "." + name;
  return true;
}

/// Tables of a publication are not declared: the provider lists the partitions of a partitioned table, the server keeps
/// the root.
bool postgres_publication(const CustomMapping& of) {
  return in_database(of) && put_list(of, "publish_param", "operations");
}

bool postgres_subscription(const CustomMapping& of) {
  const std::string database = text_of(of.attributes, "database"), name = text_of(of.attributes, "name");
  if (!database.empty() && !name.empty()) of.out.id = database + "." + name;
  return put_list(of, "publications", "publications");
}

bool postgres_logical_slot(const CustomMapping& of) {
  of.out.body["type"] = "logical";
  return true;
}

bool postgres_physical_slot(const CustomMapping& of) {
  of.out.body["type"] = "physical";
  return true;
}

}  // namespace driftd::terraform
