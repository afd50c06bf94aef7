// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "postgres/rows.hpp"
#include "postgres/settings.hpp"

namespace driftd::postgres {

inline constexpr std::array<std::string_view, 14> kKinds{
    "instance", "setting", "role", "database",     "extension",   "file_setting",       "hba",
    "ident",    "schema",  "slot", "subscription", "publication", "default_privileges", "table_fingerprint"};

/// What the monitoring role may do right now.
struct Rights {
  int version = 0;
  bool settings = false, file_settings = false, hba_rules = false, identity = false;
  bool verifiers = false;     ///< by the method of the settings
  bool conninfo = false;      ///< driftd.subscription_conninfo() is there and ours to call
  bool hba_modified = false;  ///< driftd.hba_file_modified() is there and ours to call
  bool ident = false;         ///< pg_ident_file_mappings, which PostgreSQL 15 brought
  bool subscriptions = true;  ///< everything that we read of pg_subscription; before 14 that needs more rights
};

/// Returns the right that `kind` needs and we lack; empty if it can be listed completely.
std::string missing_right(std::string_view kind, const Rights& rights);
/// Returns the right that is needed for pg_ident.conf, on servers that show it.
std::string ident_right();
/// Returns the right that is needed for the connection strings of subscriptions.
std::string conninfo_right();
/// Returns the right that is needed for role verifiers, as it would be granted.
std::string verifier_right(Verifiers by);

std::string rights_query(Verifiers by);
Rights map_rights(const Rows& rows, int version);

/// One row: `start`, `identity`, `snapshot` (which transactions have ended), and for each kind that can be read a hash
/// of the catalogue rows behind it, made by the server.
std::string gate_query(const Rights& rights, const Settings& settings);

/// Returns the query for all rows of a kind that belongs to the server, not to a database.
std::string list_query(std::string_view kind, const Rights& rights, const Settings& settings);

/// Returns a query of one row: `identity`. Without the right to it the server refuses the whole statement, so it stands
/// alone.
/// The names of settings that have a value of the files although no line of them says one any more.
std::string removed_lines_query();
/// Whether driftd.ident_file_modified() may be called, and whether pg_ident.conf is newer than what is loaded.
std::string ident_modified_right_query();
std::string ident_modified_query();

std::string identity_query();
/// One row: `role`, `identity` (whether it may be read), `version`.
std::string health_query();

}  // namespace driftd::postgres
