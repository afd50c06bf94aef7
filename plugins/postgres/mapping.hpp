// SPDX-License-Identifier: Apache-2.0
// Catalogue rows to records. Pure: no I/O, no clock; the reader sets observed_ns.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driftd/sdk/types.hpp"
#include "postgres/rows.hpp"

namespace driftd::postgres {

/// What the mapping must know about the server that answered.
struct Origin {
  std::string endpoint;        ///< host:port that we are connected to
  std::string database;        ///< the connected database
  std::string verifier_right;  ///< not empty: the role's verifiers could not be read; the right that is missing
  bool verifiers = true;       ///< false: `verifiers: off`, the attribute does not exist
  int version = 0;             ///< 150004 for 15.4; its major version prints definitions in its own way
  bool fingerprints = false;   ///< `fingerprints` is set
};

using Records = std::vector<sdk::Record>;

/// Puts the JSON list of a column as an attribute; one that is too long to be sent (kTooLong) becomes unread instead.
/// Throws CORRUPT if the column is not valid JSON.
void put_list(const Fields& row, std::string_view column, const std::string& attribute, nlohmann::json& body,
              sdk::Record& record);
/// Sets the body as text. If it exceeds the host's limits, its longest members become unread, so that they hide neither
/// the other attributes nor the other records.
void fit(sdk::Record& record, nlohmann::json body);
/// Unread, for it is longer than `bytes`.
sdk::Unread too_long(const std::string& attribute, int bytes);

Records map_instance(const Rows& rows, const Origin& from);
Records map_settings(const Rows& rows);
Records map_roles(const Rows& rows, const Origin& from);
Records map_databases(const Rows& rows);
Records map_extensions(const Rows& rows, const Origin& from);
Records map_schemas(const Rows& rows, const Origin& from);
Records map_publications(const Rows& rows, const Origin& from);
Records map_default_privileges(const Rows& rows, const Origin& from);
/// Maps tables whose schema matches one of the globs.
Records map_fingerprints(const Rows& rows, const Origin& from, const std::vector<std::string>& schemas);
/// `missing_right` is not empty if the connection strings could not be read.
Records map_subscriptions(const Rows& rows, const std::string& missing_right);
Records map_slots(const Rows& rows);
Records map_file_settings(const Rows& rows);
/// Maps all rules of pg_hba.conf, in their order, to one record.
Records map_hba(const Rows& rows);
/// Maps all mappings of pg_ident.conf to one record. If `unread_reason` is not empty they cannot be read, and `code`
/// says why.
Records map_ident(const Rows& rows, const std::string& unread_reason, driftd_status code);

/// `{"a=1", "b.c=x=y"}` of setconfig (as a JSON list) to {"a": "1", "b.c": "x=y"}; JSON text.
std::string render_setconfig(const std::string& json_list);

}  // namespace driftd::postgres
