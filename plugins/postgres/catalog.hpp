// SPDX-License-Identifier: Apache-2.0
// Queries of catalogues: those of one database, and the shared ones of replication. Read as they stand, on any version
// from 12 on; none needs a right but CONNECT.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "postgres/queries.hpp"

namespace driftd::postgres {

/// Kinds that every database has of its own.
inline constexpr std::array<std::string_view, 5> kDatabaseKinds{"extension", "schema", "publication",
                                                                "default_privileges", "table_fingerprint"};
bool is_database_kind(std::string_view kind);

/// Tables of one database whose fingerprints are taken at max_bytes.
inline constexpr int kMostTables = 10'000;

/// A JSON list of {grantee, privilege, grantable}: `acl` spelt out, or, where it is NULL, what NULL stands for.
/// MAINTAIN, which PostgreSQL 17 brought to every owner, is left out where the owner has it. `type` as acldefault()
/// wants it, between quotes.
std::string grants_of(const std::string& acl, const std::string& type, const std::string& owner);

/// What stands in a JSON column instead of a value that is too long to be sent. No JSON is equal to it.
inline constexpr std::string_view kTooLong = "too long";
/// Bytes of the texts of one list that anybody may lengthen without an end (settings of a role or of a database), at
/// max_bytes.
inline constexpr int kMostOfList = 64 << 10;
/// Bytes of a column that is made of many rows (grants, memberships, tables of a publication), at max_bytes.
inline constexpr int kMostOfCell = 2 << 20;

/// Bytes of the texts of an array. One whose stored form alone is above the bound is not unpacked to be measured.
std::string length_of(const std::string& array, int max_bytes = kMostOfList);
/// The array as a JSON list, or kTooLong.
std::string bounded_list(const std::string& array, int max_bytes = kMostOfList);
/// JSON that an expression makes, or kTooLong.
std::string bounded_cell(const std::string& expression);

/// All rows of a kind of the connected database.
std::string database_query(std::string_view kind, int version, const Settings& settings);
/// Subscriptions of all databases. `conninfo`: their digests can be asked for.
std::string subscription_query(int version, bool conninfo);
/// Slots; with `status` also what changes by itself.
std::string slot_query(bool status);

/// An md5, made by the server, over an expression of each row, in the order of `by`. No text of it grows with the rows.
std::string hash_of_each(const std::string& what, const std::string& by, const std::string& from);
/// The same over the rows of a query, in its own order.
std::string hash_of_rows(const std::string& query);
/// One row with such a hash for each of the kinds, of the connected database.
std::string database_gate_query(const std::vector<std::string>& kinds, int version, const Settings& settings);

/// Name of every database, whether it is `open` to connections, and whether it is a `template`.
std::string databases_query();

}  // namespace driftd::postgres
