// SPDX-License-Identifier: Apache-2.0
#include "postgres/catalog.hpp"

#include <algorithm>

namespace driftd::postgres {
namespace {

/// Returns an SQL string literal. Backslashes are removed, because the session does not set standard_conforming_strings
/// and the server might take them as escapes.
std::string literal(std::string text) {
  std::erase(text, '\\');
  for (std::size_t at = text.find('\''); at != std::string::npos; at = text.find('\'', at + 2)) text.insert(at, "'");
  return "'" + text + "'";
}

/// Matches at least what the globs match: `_` in LIKE is any character, so the caller filters again.
std::string like_any(const std::string& column, std::vector<std::string> globs) {
  std::string out;
  for (auto& glob : globs) {
    std::replace(glob.begin(), glob.end(), '*', '%');
    std::replace(glob.begin(), glob.end(), '\\', '_');  // LIKE's escape, and literal() would drop it
    out += (out.empty() ? "" : ", ") + literal(glob);
  }
  return column + " LIKE ANY (ARRAY[" + out + "]::text[])";
}

/// Returns SQL for a digest of one part of a table. Each row is hashed as row(…)::text, which keeps NULL apart from an
/// empty text.
std::string part(const std::string& values, const std::string& by, const std::string& from) {
  return hash_of_each("row(" + values + ")::text", by, from);
}

constexpr std::string_view kExtensions =
    "SELECT e.oid::text AS oid, extname AS name, extversion AS version, nspname AS schema FROM pg_extension e "
    "JOIN pg_namespace n ON n.oid = extnamespace ORDER BY extname";

std::string schemas() {
  return "SELECT n.oid::text AS oid, nspname AS name, pg_get_userbyid(nspowner) AS owner, " +
         grants_of("nspacl", "'n'", "nspowner") +
         " AS grants FROM pg_namespace n WHERE nspname !~ '^pg_(toast|temp_|toast_temp_)' ORDER BY nspname";
}

std::string publications(int version) {
  const bool lists = version >= 150000;  // columns, row filters, schemas
  const std::string columns =
      "(SELECT json_agg(a.attname ORDER BY a.attname) FROM pg_attribute a WHERE a.attrelid = r.prrelid AND a.attnum = "
      "ANY (r.prattrs))";
  const std::string more = lists ? ", 'columns', " + columns + ", 'filter', pg_get_expr(r.prqual, r.prrelid)" : "";
  const std::string in_schemas = lists ? "(SELECT json_agg(n.nspname ORDER BY n.nspname) FROM pg_publication_namespace "
                                         "x JOIN pg_namespace n ON n.oid "
                                         "= x.pnnspid WHERE x.pnpubid = p.oid)"
                                       : "NULL::json";
  return "SELECT p.oid::text AS oid, pubname AS name, pg_get_userbyid(pubowner) AS owner, puballtables AS all_tables, "
         "array_to_json(array_remove(ARRAY[CASE WHEN pubinsert THEN 'insert' END, CASE WHEN pubupdate THEN 'update' "
         "END, "
         "CASE WHEN pubdelete THEN 'delete' END, CASE WHEN pubtruncate THEN 'truncate' END], NULL)) AS operations, "
         "coalesce((to_jsonb(p) ->> 'pubviaroot')::boolean, false) AS via_root, " +
         bounded_cell(
             "(SELECT json_agg(json_build_object('table', n.nspname || '.' || c.relname" + more +
             ") ORDER BY n.nspname, c.relname) FROM pg_publication_rel r JOIN pg_class c ON c.oid = r.prrelid JOIN "
             "pg_namespace n ON n.oid = c.relnamespace WHERE r.prpubid = p.oid)") +
         " AS tables, " + bounded_cell(in_schemas) + " AS schemas FROM pg_publication p ORDER BY pubname";
}

std::string default_privileges() {
  // Default privileges of a schema add to the global ones; global ones replace the built-in defaults.
  return "SELECT d.oid::text AS oid, pg_get_userbyid(defaclrole) AS role, CASE defaclobjtype WHEN 'r' THEN 'tables' "
         "WHEN "
         "'S' THEN 'sequences' WHEN 'f' THEN 'functions' WHEN 'T' THEN 'types' WHEN 'n' THEN 'schemas' ELSE "
         "defaclobjtype::text END AS objects, n.nspname AS schema, " +
         grants_of("defaclacl", "CASE defaclobjtype WHEN 'S' THEN 's' ELSE defaclobjtype END", "defaclrole") +
         " AS grants FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = defaclnamespace ORDER BY 2, 3, 4";
}

std::string fingerprints(const Settings& settings) {
  if (settings.fingerprints.empty()) return "SELECT NULL::text AS oid WHERE false";
  // Collations are written as regcollation would; PostgreSQL 12 does not have that type.
  const std::string columns = part(
      "a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated, "
      "coalesce((SELECT CASE WHEN pg_collation_is_visible(l.oid) THEN '' ELSE quote_ident(ln.nspname) || '.' END || "
      "quote_ident(l.collname) FROM pg_collation l JOIN pg_namespace ln ON ln.oid = l.collnamespace WHERE l.oid = "
      "a.attcollation), '-'), pg_get_expr(d.adbin, d.adrelid), (SELECT string_agg(g::text, ',' ORDER BY g::text "
      "COLLATE \"C\") FROM unnest(a.attacl) g)",
      "a.attnum",
      "pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = c.oid "
      "AND "
      "a.attnum > 0 AND NOT a.attisdropped");
  const std::string constraints = part("x.conname, x.convalidated, pg_get_constraintdef(x.oid)", "x.conname",
                                       "pg_constraint x WHERE x.conrelid = c.oid");
  const std::string indexes = part("pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisreplident",
                                   "pg_get_indexdef(i.indexrelid)", "pg_index i WHERE i.indrelid = c.oid");
  const std::string policies = part(
      "p.polname, p.polcmd, p.polpermissive, (SELECT string_agg(n.r, ',' ORDER BY n.r COLLATE "
      "\"C\") FROM (SELECT CASE r WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(r)::text END AS r FROM unnest(p.polroles) "
      "r) n), pg_get_expr(p.polqual, p.polrelid), "
      "pg_get_expr(p.polwithcheck, p.polrelid)",
      "p.polname", "pg_policy p WHERE p.polrelid = c.oid");
  const std::string triggers = part("pg_get_triggerdef(t.oid), t.tgenabled", "t.tgname",
                                    "pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal");
  return "SELECT c.oid::text AS oid, n.nspname AS schema, c.relname AS name, CASE c.relkind WHEN 'r' THEN 'table' WHEN "
         "'p' "
         "THEN 'partitioned table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END AS "
         "type, "
         "pg_get_userbyid(c.relowner) AS owner, c.relpersistence = 'u' AS unlogged, c.relrowsecurity AS row_security, "
         "c.relforcerowsecurity AS force_row_security, c.relreplident::text AS replica_identity, " +
         columns + " AS columns, " + constraints + " AS constraints, " + indexes + " AS indexes, " + policies +
         " AS policies, " + triggers +
         " AS triggers, CASE WHEN c.relkind IN ('v', 'm') THEN md5(pg_get_viewdef(c.oid)) END AS definition, " +
         grants_of("c.relacl", "'r'", "c.relowner") +
         " AS grants FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', "
         "'m', "
         "'f') AND NOT c.relispartition AND " +
         like_any("n.nspname", settings.fingerprints) + " ORDER BY 2, 3 LIMIT " + std::to_string(kMaxTables + 1);
}

std::string bare_query(std::string_view kind, int version, const Settings& settings) {
  if (kind == "extension") return std::string(kExtensions);
  if (kind == "schema") return schemas();
  if (kind == "publication") return publications(version);
  if (kind == "default_privileges") return default_privileges();
  return fingerprints(settings);
}

}  // namespace

bool is_database_kind(std::string_view kind) {
  return std::find(kDatabaseKinds.begin(), kDatabaseKinds.end(), kind) != kDatabaseKinds.end();
}

std::string grants_of(const std::string& acl, const std::string& type, const std::string& owner) {
  return bounded_cell(
      "(SELECT coalesce(json_agg(json_build_object('grantee', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE "
      "pg_get_userbyid(a.grantee) END, 'privilege', a.privilege_type, 'grantable', a.is_grantable) ORDER BY a.grantee, "
      "a.privilege_type, a.is_grantable), '[]') FROM aclexplode(coalesce(" +
      acl + ", acldefault(" + type + ", " + owner + "))) a WHERE a.privilege_type <> 'MAINTAIN' OR a.grantee <> " +
      owner + ")");
}

std::string length_of(const std::string& array, int max_bytes) {
  return "(CASE WHEN pg_column_size(" + array + ") > " + std::to_string(max_bytes) +
         " THEN 1 << 30 ELSE (SELECT coalesce(sum(octet_length(u)), 0)::int FROM unnest(" + array + ") u) END)";
}

std::string bounded_list(const std::string& array, int max_bytes) {
  return "CASE WHEN " + length_of(array, max_bytes) + " <= " + std::to_string(max_bytes) + " THEN array_to_json(" +
         array + ")::text ELSE '" + std::string(kTooLong) + "' END";
}

std::string bounded_cell(const std::string& expression) {
  return "(SELECT CASE WHEN octet_length(v.t) > " + std::to_string(kMaxOfCell) + " THEN '" + std::string(kTooLong) +
         "' ELSE v.t END FROM (SELECT (" + expression + ")::text AS t OFFSET 0) v)";
}

std::string database_query(std::string_view kind, int version, const Settings& settings) {
  return bare_query(kind, version, settings);
}

std::string subscription_query(int version, bool conninfo) {
  std::string more;
  if (version >= 140000) more += ", subbinary AS binary, substream::text AS streaming";
  if (version >= 150000) more += ", subtwophasestate <> 'd' AS two_phase, subdisableonerr AS disable_on_error";
  if (version >= 160000) more += ", suborigin AS origin";
  return "SELECT s.oid::text AS oid, d.datname AS database, subname AS name, pg_get_userbyid(subowner) AS owner, "
         "subenabled "
         "AS enabled, subslotname AS slot, subsynccommit AS synchronous_commit, " +
         bounded_list("subpublications", kMaxOfCell) + " AS publications" + more +
         (conninfo ? ", x.digest AS conninfo" : "") +
         " FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid" +
         (conninfo ? " LEFT JOIN driftd.subscription_conninfo() x ON x.subscription_oid = s.oid" : "") +
         " ORDER BY 2, 3";
}

std::string slot_query(bool status) {
  const std::string changing =
      ", s.active, to_jsonb(s) ->> 'wal_status' AS wal_status, to_jsonb(s) ->> 'safe_wal_size' AS safe_wal_size, "
      "pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END, "
      "s.restart_lsn)::bigint AS retained_bytes";
  return "SELECT s.slot_name AS name, s.slot_type AS type, s.plugin, s.database, coalesce((to_jsonb(s) ->> "
         "'two_phase')::boolean, false) AS two_phase" +
         (status ? changing : "") + " FROM pg_replication_slots s WHERE NOT s.temporary ORDER BY 1";
}

std::string hash_of_each(const std::string& what, const std::string& by, const std::string& from) {
  return "(SELECT md5(coalesce(string_agg(md5(" + what + "), ','" + (by.empty() ? std::string() : " ORDER BY " + by) +
         "), '')) FROM " + from + ")";
}

std::string hash_of_rows(const std::string& query) { return hash_of_each("q::text", {}, "(" + query + ") q"); }

std::string database_gate_query(const std::vector<std::string>& kinds, int version, const Settings& settings) {
  std::string out;
  for (const auto& kind : kinds) {
    out += (out.empty() ? "SELECT " : ", ") + hash_of_rows(bare_query(kind, version, settings)) + " AS " + kind;
  }
  return out;
}

std::string databases_query() {
  return "SELECT datname AS name, datallowconn AS open, datistemplate AS template FROM pg_database ORDER BY datname";
}

}  // namespace driftd::postgres
