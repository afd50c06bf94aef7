// SPDX-License-Identifier: Apache-2.0
#include "postgres/staged_edits.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/apply_steps.hpp"

namespace driftd::postgres {
namespace {

using nlohmann::json;

[[noreturn]] void cannot_tell(const std::string& what, const std::string& next) {
  throw common::CannotSet("it cannot be told whether " + what +
                          ", which a reload would put in force with this value; " + next);
}

Records listed(Reader& reader, const char* kind, const std::string& what) {
  Listing listing = reader.list(kind);
  if (!listing.missing.empty()) cannot_tell(what, listing.missing.front().what());
  return std::move(listing.records);
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

/// `postgresql.conf:work_mem#2` → `work_mem`
std::string setting_of_line(const std::string& id) {
  const std::string name = id.substr(id.rfind(':') + 1);
  return lower(name.substr(0, name.find('#')));
}

}  // namespace

std::vector<std::string> staged_edits(sdk::Call& call, Client& client, Reader& reader, const std::string& setting) {
  std::vector<std::string> out;
  for (const auto& line : listed(reader, "file_setting", "lines of the configuration files were edited")) {
    const bool staged = json::parse(line.body).value("state", "") == "edited_not_reloaded";
    if (staged && setting_of_line(line.id) != lower(setting)) out.push_back(line.id);
  }
  const Rows removed = client.query(call, removed_lines_query());
  for (std::size_t i = 0; i < removed.rows.size(); ++i) {
    const std::string name = Fields(removed, i).text("name");
    if (lower(name) != lower(setting)) out.push_back("the removed line of " + name);
  }
  for (const auto& file : listed(reader, "hba", "pg_hba.conf was edited")) {
    const json status = json::parse(file.status.empty() ? "{}" : file.status);
    if (!status.contains("edited_not_reloaded"))
      cannot_tell("pg_hba.conf was edited", "create driftd.hba_file_modified() as the README's \"Rights\" says");
    if (status["edited_not_reloaded"] == true) out.push_back("pg_hba.conf");
  }
  const Rows may = client.query(call, ident_modified_right_query());
  if (!Fields(may, 0).flag("ident_modified")) {
    cannot_tell("pg_ident.conf was edited",
                "create driftd.ident_file_modified() as the README's \"To put values back\" says");
  }
  const Rows ident = client.query(call, ident_modified_query());
  if (Fields(ident, 0).flag("edited_not_reloaded")) out.push_back("pg_ident.conf");
  return out;
}

}  // namespace driftd::postgres
