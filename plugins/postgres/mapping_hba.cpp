// SPDX-License-Identifier: Apache-2.0
// pg_hba.conf and pg_ident.conf: each file is one record, because the order of its rules is part of what it means.
#include <arpa/inet.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>

#include "postgres/catalog.hpp"
#include "postgres/guc.hpp"
#include "postgres/mapping.hpp"

namespace driftd::postgres {
namespace {

using nlohmann::json;
using Bytes = std::vector<std::uint8_t>;

/// Bytes of an IPv4 or IPv6 address; empty if the text is none.
Bytes address_bytes(const std::string& text) {
  std::array<std::uint8_t, 16> out{};
  if (inet_pton(AF_INET6, text.c_str(), out.data()) == 1) return {out.begin(), out.end()};
  if (inet_pton(AF_INET, text.c_str(), out.data()) == 1) return {out.begin(), out.begin() + 4};
  return {};
}

/// Number of leading ones of a mask; empty if a one follows a zero.
std::optional<int> prefix_length(const Bytes& mask) {
  int ones = 0;
  bool ended = false;
  for (const std::uint8_t byte : mask) {
    const int here = std::countl_one(byte);
    const bool gap = static_cast<std::uint8_t>(byte << here) != 0;
    if (gap || (ended && here > 0)) return std::nullopt;
    ones += here;
    ended = here < 8;
  }
  return ones;
}

/// `address` as a network in CIDR notation or a keyword, `host` for a name. The server compares names without case and
/// keywords with it, so they are two members. A mask with a gap has no CIDR notation: it stays in `netmask`.
void put_address(const Fields& row, json& rule) {
  const auto address = row.find("address");
  if (!address) return;
  const auto netmask = row.find("netmask");
  const Bytes bytes = address_bytes(*address);
  const bool keyword = *address == "all" || *address == "samehost" || *address == "samenet";
  if (bytes.empty() && !keyword) {
    rule["host"] = *address;
    return;
  }
  const Bytes mask = netmask ? address_bytes(*netmask) : Bytes();
  const auto length = mask.size() == bytes.size() && !mask.empty() ? prefix_length(mask) : std::nullopt;
  rule["address"] = length ? *address + "/" + std::to_string(*length) : *address;
  if (netmask && !length) rule["netmask"] = *netmask;
}

json parse_cell(const std::string& text) {
  json out = json::parse(text, nullptr, false);
  if (out.is_discarded()) throw sdk::Failure(DRIFTD_CORRUPT, "the server answered JSON that cannot be read");
  return out;
}

/// A list of names; a list of one is that name.
void put_names(const Fields& row, std::string_view column, const char* member, json& rule) {
  const auto found = row.find(column);
  if (!found) return;
  const json names = parse_cell(*found);
  if (names.is_array()) rule[member] = names.size() == 1 ? names.front() : names;
}

void put_text(const Fields& row, std::string_view column, const char* member, json& rule) {
  if (const auto found = row.find(column)) rule[member] = *found;
}

/// A broken line shows where it is, because it has nothing else to be found by.
void put_error(const Fields& row, json& rule) {
  if (!row.find("error")) return;
  rule["error"] = row.text("error");
  rule["line"] = parse_cell(row.text("line"));
}

/// Returns a name for a rule that does not depend on its place in the file. Equal rules have the same name.
std::string name_of_rule(const json& rule) {
  constexpr std::size_t kShown = 200;
  std::string out;
  for (const char* member : {"type", "databases", "users", "address", "netmask", "host", "method"}) {
    if (!rule.contains(member)) continue;
    json shown = rule[member];
    if (shown.is_array()) std::sort(shown.begin(), shown.end());
    out += (out.empty() ? "" : " ") + (shown.is_string() ? shown.get<std::string>() : shown.dump());
  }
  if (out.size() <= kShown) return out;
  return std::to_string(XXH3_64bits(out.data(), out.size())) + " " + rule.value("method", "");
}

/// Puts the options of a rule in `rule`, and those that are secrets in `secrets`, under the rule's name: digests in the
/// ordered list would hide all of it.
void put_options(const Fields& row, json& rule, json& secrets, std::map<std::string, int>& seen) {
  const auto found = row.find("options");
  if (!found) return;
  json options = parse_cell(render_setconfig(*found));
  json hidden = json::object();
  for (auto option = options.begin(); option != options.end();) {
    const bool secret = secret_guc(option.key());
    if (secret) hidden[option.key()] = option.value();
    option = secret ? options.erase(option) : std::next(option);
  }
  if (!options.empty()) rule["options"] = std::move(options);
  if (hidden.empty()) return;
  std::string name = name_of_rule(rule);
  if (const int nth = ++seen[name]; nth > 1) name += " #" + std::to_string(nth);
  secrets[name] = std::move(hidden);
}

bool is_too_long(const Fields& row) {
  for (const char* column :
       {"databases", "users", "address", "options", "error", "map", "system_user", "database_user"}) {
    if (row.text(column) == kTooLong) return true;
  }
  return false;
}

sdk::Unread unread_line(const char* attribute, const Fields& row) {
  return {attribute, DRIFTD_BUDGET,
          "line " + row.text("line") + " holds more than is read of one line (" + std::to_string(kMaxOfCell >> 20) +
              " MiB of names, " + std::to_string(kMaxOfList >> 10) + " KiB of options)"};
}

sdk::Record file_record(const char* kind, const char* id) {
  sdk::Record out;
  out.kind = kind;
  out.id = id;
  return out;
}

}  // namespace

Records map_hba(const Rows& rows) {
  sdk::Record record = file_record("hba", "pg_hba.conf");
  json rules = json::array(), secrets = json::object();
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const Fields row(rows, i);
    if (i == 0 && row.find("edited_not_reloaded")) {
      record.status = json{{"edited_not_reloaded", row.flag("edited_not_reloaded")}}.dump();
      if (row.flag("edited_not_reloaded")) record.metadata["edited_not_reloaded"] = "true";
    }
    if (!row.find("line")) continue;  // of an empty file
    if (is_too_long(row)) {
      record.unread.push_back(unread_line("rules", row));
      record.unread.push_back(unread_line("secrets", row));
      break;
    }
    json rule = json::object();
    put_text(row, "type", "type", rule);
    put_names(row, "databases", "databases", rule);
    put_names(row, "users", "users", rule);
    put_address(row, rule);
    put_text(row, "method", "method", rule);
    put_options(row, rule, secrets, seen);
    put_error(row, rule);
    rules.push_back(std::move(rule));
  }
  record.metadata["rules"] = std::to_string(rules.size());
  json body = json::object();
  if (record.unread.empty()) body = {{"rules", std::move(rules)}, {"secrets", std::move(secrets)}};
  fit(record, std::move(body));
  return {record};
}

Records map_ident(const Rows& rows, const std::string& unread_reason, driftd_status code) {
  sdk::Record record = file_record("ident", "pg_ident.conf");
  json mappings = json::array();
  if (!unread_reason.empty()) record.unread.push_back({"mappings", code, unread_reason});
  for (std::size_t i = 0; i < rows.rows.size() && record.unread.empty(); ++i) {
    const Fields row(rows, i);
    if (is_too_long(row)) {
      record.unread.push_back(unread_line("mappings", row));
      break;
    }
    json mapping = json::object();
    for (const char* member : {"map", "system_user", "database_user"}) put_text(row, member, member, mapping);
    put_error(row, mapping);
    mappings.push_back(std::move(mapping));
  }
  json body = json::object();
  if (record.unread.empty()) body["mappings"] = std::move(mappings);
  fit(record, std::move(body));
  return {record};
}

}  // namespace driftd::postgres
