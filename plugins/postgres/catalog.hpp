// SPDX-License-Identifier: Apache-2.0
// Queries of catalogues: those of one database, and the shared ones of replication. They work unchanged from version 12
// on and need only the right CONNECT.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "postgres/queries.hpp"

namespace driftd::postgres {

/// Kinds that exist in every database.
inline constexpr std::array<std::string_view, 5> kDatabaseKinds{"extension", "schema", "publication",
                                                                "default_privileges", "table_fingerprint"};
bool is_database_kind(std::string_view kind);

/// Maximum number of fingerprinted tables of one database.
inline constexpr int kMaxTables = 10'000;

/// Returns SQL for a JSON list of {grantee, privilege, grantable}: `acl` expanded, or the default privileges if it is
/// NULL. MAINTAIN, which PostgreSQL 17 gave to every owner, is left out where the owner has it. `type` is the quoted
/// type letter of acldefault().
std::string grants_of(const std::string& acl, const std::string& type, const std::string& owner);

/// Replaces the value of a JSON column that is too long to be sent. It is not valid JSON, so no value equals it.
inline constexpr std::string_view kTooLong = "too long";
/// Maximum bytes of the texts of one list that users may lengthen without limit (settings of a role or of a database).
inline constexpr int kMaxOfList = 64 << 10;
/// Maximum bytes of a column that is made of many rows (grants, memberships, tables of a publication).
inline constexpr int kMaxOfCell = 2 << 20;

/// Returns SQL for the bytes of the texts of an array. If its stored form alone is above the limit, it is not unpacked.
std::string length_of(const std::string& array, int max_bytes = kMaxOfList);
/// Returns SQL for the array as a JSON list, or kTooLong.
std::string bounded_list(const std::string& array, int max_bytes = kMaxOfList);
/// Returns SQL for the JSON of an expression, or kTooLong.
std::string bounded_cell(const std::string& expression);

/// Returns the query for all rows of a kind of the connected database.
std::string database_query(std::string_view kind, int version, const Settings& settings);
/// Returns the query for the subscriptions of all databases. `conninfo`: digests of the connection strings can be read.
std::string subscription_query(int version, bool conninfo);
/// Returns the query for slots; with `status` it includes what changes by itself.
std::string slot_query(bool status);

/// Returns SQL for an md5, computed by the server, over an expression of each row in the order of `by`. No text grows
/// with the number of rows.
std::string hash_of_each(const std::string& what, const std::string& by, const std::string& from);
/// The same over the rows of a query, in its own order.
std::string hash_of_rows(const std::string& query);
/// Returns a query of one row with such a hash for each of the kinds of the connected database.
std::string database_gate_query(const std::vector<std::string>& kinds, int version, const Settings& settings);

/// Returns the query for the name of every database, whether it is `open` to connections, and whether it is a
/// `template`.
std::string databases_query();

}  // namespace driftd::postgres
