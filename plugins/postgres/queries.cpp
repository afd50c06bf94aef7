// SPDX-License-Identifier: Apache-2.0
#include "postgres/queries.hpp"

#include "postgres/catalog.hpp"

namespace driftd::postgres {
namespace {

// A session always has its own value of these; they say nothing about the server.
constexpr std::string_view kSessionOwn =
    "('application_name','client_encoding','in_hot_standby','is_superuser','role','seed','session_authorization',"
    "'transaction_deferrable','transaction_isolation','transaction_read_only')";

constexpr std::string_view kTimeline =
    "CASE WHEN pg_is_in_recovery() THEN greatest((SELECT timeline_id FROM pg_control_checkpoint()), "
    "(SELECT received_tli FROM pg_stat_wal_receiver)) "
    "ELSE ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int END";

// Whether a standby's stream of WAL can be seen: `denied` where the view shows its process id only, `none` where no
// upstream is set, `silent` where one is (or may be: its setting is hidden) and sends nothing now.
constexpr std::string_view kStream =
    "CASE WHEN NOT pg_is_in_recovery() OR EXISTS (SELECT FROM pg_stat_wal_receiver WHERE received_tli IS NOT NULL) "
    "THEN "
    "'seen' WHEN NOT pg_has_role('pg_read_all_stats', 'USAGE') THEN 'denied' WHEN (SELECT setting FROM pg_settings "
    "WHERE "
    "name = 'primary_conninfo') = '' THEN 'none' ELSE 'silent' END";

/// Finds the function of our README without touching a schema that we may not use. A function that is not owned by a
/// superuser is not ours: anybody may create a schema of this name, and the function would run with our rights.
std::string callable(std::string_view function) {
  return "EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'driftd' AND "
         "p.proname = '" +
         std::string(function) +
         "' AND p.pronargs = 0 AND EXISTS (SELECT FROM pg_roles o WHERE o.oid = p.proowner AND o.rolsuper) AND "
         "has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE'))";
}

std::string hash(const std::string& what, const std::string& from) {
  return hash_of_each(what, "md5(" + what + ")", from);
}

/// Settings of a role or of a database as text, which nobody may lengthen beyond what is read of them anyway: text of
/// an array doubles each quote, text of a row once more, and the server ends what grows beyond 1 GiB.
const std::string kRoleSettings =
    hash("row(s.setdatabase, s.setrole, " + bounded_list("s.setconfig") + ")::text", "pg_db_role_setting s");

/// Everything of pg_roles but the settings, which are in kRoleSettings.
constexpr std::string_view kRole =
    "row(r.oid, r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolreplication, "
    "r.rolbypassrls, r.rolconnlimit, r.rolvaliduntil)::text";

std::string verifier_rows(Verifiers by) {
  if (by == Verifiers::function) return "driftd.role_verifiers()";
  return "(SELECT oid AS role_oid, CASE WHEN rolpassword IS NULL THEN 'none' WHEN rolpassword LIKE 'SCRAM-SHA-256$%' "
         "THEN 'scram-sha-256' ELSE 'md5' END AS password_type, "
         "coalesce(encode(sha256(convert_to(rolpassword, 'UTF8')), 'hex'), 'none') AS digest FROM pg_authid)";
}

const std::string kDatabases =
    "SELECT d.oid::text AS oid, datname AS name, pg_get_userbyid(datdba) AS owner, pg_encoding_to_char(encoding) AS "
    "encoding, datcollate AS collation, datctype AS ctype, (SELECT spcname FROM pg_tablespace t WHERE t.oid = "
    "dattablespace) AS tablespace, datistemplate AS is_template, datallowconn AS allow_connections, datconnlimit AS "
    "connection_limit, " +
    bounded_cell(
        "(SELECT json_agg(json_build_object('grantee', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE "
        "pg_get_userbyid(a.grantee) END, 'privilege', a.privilege_type, 'grantable', a.is_grantable) ORDER BY "
        "a.grantee, "
        "a.privilege_type, a.is_grantable) FROM aclexplode(coalesce(datacl, acldefault('d', datdba))) a)") +
    " AS grants, (SELECT " + bounded_list("s.setconfig") +
    " FROM pg_db_role_setting s WHERE s.setdatabase = d.oid AND s.setrole = 0) AS settings FROM pg_database d ORDER BY "
    "datname";

/// The last line of the files that sets search_path, because our own sessions override it. NULL if there is none.
std::string of_path(std::string_view column) {
  return "(SELECT " + std::string(column) +
         "::text FROM pg_file_settings WHERE lower(name) = 'search_path' AND applied ORDER BY seqno DESC LIMIT 1)";
}

std::string is_long(const std::string& text) {
  return "coalesce(octet_length(" + text + ") > " + std::to_string(kMaxOfCell) + ", false)";
}

/// Text that is sent completely or not at all; `too_long` of the same row tells NULL from a text that was not sent.
std::string bounded_text(const std::string& text) {
  return "CASE WHEN NOT " + is_long(text) + " THEN " + text + " END";
}

std::string setting_query(const Rights& rights) {
  const auto column = [&](const char* name, const std::string& of_file) {
    if (!rights.file_settings) return std::string(name);
    return "CASE name WHEN 'search_path' THEN " + of_file + " ELSE " + name + "::text END AS " + name;
  };
  return "SELECT name, " + bounded_text("v.setting") + " AS setting, " + is_long("v.setting") +
         " AS too_long, unit, vartype, context, source, sourcefile, sourceline, pending_restart FROM (SELECT name, " +
         column("setting", "coalesce(" + of_path("setting") + ", boot_val)") + ", unit, vartype, context, " +
         column("source", "CASE WHEN " + of_path("setting") + " IS NULL THEN 'default' ELSE 'configuration file' END") +
         ", " + column("sourcefile", of_path("sourcefile")) + ", " + column("sourceline", of_path("sourceline")) +
         ", pending_restart FROM pg_settings WHERE name NOT IN " + std::string(kSessionOwn) +
         " OFFSET 0) v ORDER BY name";
}

std::string hash_of(std::string_view kind, const Rights& rights, const Settings& settings) {
  const std::string settings_hash =
      hash("s::text", "pg_settings s WHERE name NOT IN " + std::string(kSessionOwn)) +
      (rights.file_settings ? " || coalesce(" + of_path("setting") + ", '')" : std::string());
  if (kind == "instance") {
    return "md5(concat_ws('|', version(), pg_is_in_recovery(), " + std::string(kTimeline) +
           ", (SELECT conninfo FROM pg_stat_wal_receiver), (SELECT failed_count FROM pg_stat_archiver)))";
  }
  if (kind == "setting") return "md5(" + settings_hash + ")";
  if (kind == "role") {
    std::string parts = hash(std::string(kRole), "pg_roles r") + " || " + hash("m::text", "pg_auth_members m") +
                        " || " + kRoleSettings + " || " + hash("d.oid::text || d.datname::text", "pg_database d");
    if (rights.verifiers) parts += " || " + hash("v::text", verifier_rows(settings.verifiers) + " v");
    return "md5(" + parts + ")";
  }
  if (kind == "database") return hash_of_rows(kDatabases);
  if (kind == "slot") return hash_of_rows(slot_query(false));
  if (kind == "subscription") return hash_of_rows(subscription_query(rights.version, rights.conninfo));
  if (kind == "file_setting") return "md5(" + settings_hash + " || " + hash("f::text", "pg_file_settings f") + ")";
  if (kind == "ident") return rights.ident ? hash("i::text", "pg_ident_file_mappings i") : std::string("'unread'");
  const std::string modified = rights.hba_modified ? " || coalesce(driftd.hba_file_modified()::text, '')" : "";
  return "md5(" + hash("h::text", "pg_hba_file_rules h") + " || pg_conf_load_time()::text" + modified + ")";
}

std::string instance_query(const Rights& rights) {
  const std::string identity =
      rights.identity ? "(SELECT system_identifier::text FROM pg_control_system()) AS system_identifier"
                      : "NULL AS system_identifier, 'EXECUTE ON FUNCTION pg_control_system()' AS identity_right";
  return "SELECT current_setting('server_version') AS version, CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE "
         "'primary' END AS role, " +
         std::string(kTimeline) + " AS timeline, " + identity +
         ", (SELECT sender_host || ':' || sender_port::text FROM pg_stat_wal_receiver) AS upstream, " +
         std::string(kStream) +
         " AS stream"
         ", pg_postmaster_start_time()::text AS postmaster_start, pg_conf_load_time()::text AS conf_load"
         ", (SELECT coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) FROM "
         "pg_stat_archiver)"
         " AS archive_failing, CASE WHEN pg_is_in_recovery() THEN CASE WHEN pg_last_wal_receive_lsn() = "
         "pg_last_wal_replay_lsn() THEN 0 ELSE extract(epoch FROM now() - pg_last_xact_replay_timestamp())::bigint END "
         "END"
         " AS lag_seconds";
}

/// Settings of the role by database, or null if they are too long. All share one limit and short ones come first, so
/// that the owner of a database can crowd out only himself.
std::string in_databases() {
  return "(SELECT json_object_agg(x.datname, CASE WHEN x.total <= " + std::to_string(kMaxOfList) +
         " THEN array_to_json(x.setconfig) END) FROM (SELECT d.datname, s.setconfig, sum(z.n) OVER (ORDER BY z.n, "
         "d.oid) AS "
         "total FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase, LATERAL (SELECT " +
         length_of("s.setconfig") + "::bigint AS n OFFSET 0) z WHERE s.setrole = r.oid) x)";
}

std::string role_query(const Rights& rights, const Settings& settings) {
  const bool verifiers = settings.verifiers != Verifiers::off && rights.verifiers;
  const std::string more = rights.version >= 160000 ? ", 'inherit', m.inherit_option, 'set', m.set_option" : "";
  return "SELECT r.oid::text AS oid, r.rolname AS name, r.rolsuper AS superuser, r.rolinherit AS inherit, "
         "r.rolcreaterole AS create_role, r.rolcreatedb AS create_db, r.rolcanlogin AS login, "
         "r.rolreplication AS replication, r.rolbypassrls AS bypass_rls, r.rolconnlimit AS connection_limit, "
         "CASE WHEN isfinite(r.rolvaliduntil) THEN to_char(r.rolvaliduntil AT TIME ZONE 'UTC', "
         "'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') ELSE r.rolvaliduntil::text END AS valid_until, " +
         bounded_cell(
             "(SELECT json_agg(json_build_object('role', pg_get_userbyid(m.roleid), 'admin', m.admin_option" + more +
             ") ORDER BY pg_get_userbyid(m.roleid), m.admin_option) FROM pg_auth_members m WHERE m.member = r.oid)") +
         " AS memberships, (SELECT " + bounded_list("s.setconfig") +
         " FROM pg_db_role_setting s WHERE s.setrole = r.oid AND s.setdatabase = 0) AS settings, " + in_databases() +
         " AS database_settings" +
         (verifiers ? ", v.digest AS verifier, v.password_type FROM pg_roles r LEFT JOIN " +
                          verifier_rows(settings.verifiers) + " v ON v.role_oid = r.oid"
                    : " FROM pg_roles r") +
         " ORDER BY r.rolname";
}

/// Rules in the order of the file, which the order of the view's rows is not promised to be. A file without rules is
/// one row without a line.
std::string hba_query(const Rights& rights) {
  const std::string modified =
      rights.hba_modified ? "driftd.hba_file_modified() > pg_conf_load_time()" : "NULL::boolean";
  return "SELECT h.line_number AS line, h.type, " + bounded_list("h.database", kMaxOfCell) + " AS databases, " +
         bounded_list("h.user_name", kMaxOfCell) + " AS users, " + bounded_cell("h.address") +
         " AS address, h.netmask, h.auth_method AS method, " + bounded_list("h.options") + " AS options, " +
         bounded_cell("h.error") + " AS error, m.edited_not_reloaded FROM (SELECT " + modified +
         " AS edited_not_reloaded OFFSET 0) m LEFT JOIN pg_hba_file_rules() WITH ORDINALITY AS h ON true ORDER BY "
         "h.ordinality";
}

std::string ident_query(const Rights& rights) {
  if (!rights.ident) return "SELECT NULL::int AS line WHERE false";
  return "SELECT line_number AS line, " + bounded_cell("map_name") + " AS map, " + bounded_cell("sys_name") +
         " AS system_user, " + bounded_cell("pg_username") + " AS database_user, " + bounded_cell("error") +
         " AS error FROM pg_ident_file_mappings() ORDER BY line_number, map_name, sys_name";
}

const std::string kFileSettings =
    "SELECT f.sourcefile, f.sourceline, f.name, " + bounded_text("f.setting") + " AS setting, " + is_long("f.setting") +
    " OR " + is_long("s.setting") + " AS too_long, f.applied, f.error, " +
    bounded_text("CASE s.name WHEN 'search_path' THEN f.setting ELSE s.setting END") +
    " AS current, s.unit, s.vartype, CASE s.name WHEN 'search_path' THEN 'configuration file' ELSE s.source "
    "END AS source, s.pending_restart, regexp_replace(current_setting('config_file'), '/[^/]*$', '') AS folder FROM "
    "pg_file_settings f LEFT JOIN pg_settings s ON lower(s.name) = lower(f.name) ORDER BY f.seqno";

}  // namespace

std::string missing_right(std::string_view kind, const Rights& rights) {
  if (kind == "setting" && !rights.settings) return "pg_monitor";
  if (kind == "file_setting" && !rights.settings) return "pg_monitor";
  if (kind == "file_setting" && !rights.file_settings) {
    return "SELECT ON pg_file_settings, EXECUTE ON FUNCTION pg_show_all_file_settings()";
  }
  if (kind == "hba" && !rights.hba_rules) {
    return "SELECT ON pg_hba_file_rules, EXECUTE ON FUNCTION pg_hba_file_rules()";
  }
  if (kind == "subscription" && !rights.subscriptions) return "SELECT (oid, subsynccommit) ON pg_subscription";
  return {};
}

std::string verifier_right(Verifiers by) {
  if (by == Verifiers::pg_authid) return "SELECT ON pg_authid";
  return "USAGE ON SCHEMA driftd, EXECUTE ON FUNCTION driftd.role_verifiers() (made by the README's grants)";
}

std::string ident_right() { return "SELECT ON pg_ident_file_mappings, EXECUTE ON FUNCTION pg_ident_file_mappings()"; }

std::string conninfo_right() {
  return "USAGE ON SCHEMA driftd, EXECUTE ON FUNCTION driftd.subscription_conninfo() (made by the README's grants)";
}

std::string rights_query(Verifiers by) {
  const std::string verifiers = by == Verifiers::function ? callable("role_verifiers")
                                                          : std::string("has_table_privilege('pg_authid', 'SELECT')");
  return "SELECT pg_has_role('pg_read_all_settings', 'USAGE') AS settings, has_table_privilege('pg_file_settings', "
         "'SELECT') AND has_function_privilege('pg_show_all_file_settings()', 'EXECUTE') AS file_settings, "
         "has_table_privilege('pg_hba_file_rules', 'SELECT') AND has_function_privilege('pg_hba_file_rules()', "
         "'EXECUTE') AS hba_rules, has_function_privilege('pg_control_system()', 'EXECUTE') AS identity, " +
         verifiers + " AS verifiers, " + callable("subscription_conninfo") + " AS conninfo, " +
         callable("hba_file_modified") +
         " AS hba_modified, coalesce(has_table_privilege(to_regclass('pg_catalog.pg_ident_file_mappings')::oid, "
         "'SELECT') "
         "AND has_function_privilege(to_regprocedure('pg_catalog.pg_ident_file_mappings()')::oid, 'EXECUTE'), false) "
         "AS "
         "ident, has_column_privilege('pg_subscription', 'oid', 'SELECT') AND "
         "has_column_privilege('pg_subscription', 'subsynccommit', 'SELECT') AS subscriptions";
}

Rights map_rights(const Rows& rows, int version) {
  const Fields row(rows, 0);
  return {version,
          row.flag("settings"),
          row.flag("file_settings"),
          row.flag("hba_rules"),
          row.flag("identity"),
          row.flag("verifiers"),
          row.flag("conninfo"),
          row.flag("hba_modified"),
          row.flag("ident"),
          row.flag("subscriptions")};
}

std::string gate_query(const Rights& rights, const Settings& settings) {
  std::string out =
      "SELECT pg_postmaster_start_time()::text AS start, pg_conf_load_time()::text AS load, "
      "txid_current_snapshot()::text AS snapshot";
  out += rights.identity ? ", (SELECT system_identifier::text FROM pg_control_system()) AS identity"
                         : ", NULL AS identity";
  for (const auto kind : kKinds) {
    if (is_database_kind(kind) || !missing_right(kind, rights).empty()) continue;
    out += ", " + hash_of(kind, rights, settings) + " AS " + std::string(kind);
  }
  return out;
}

std::string list_query(std::string_view kind, const Rights& rights, const Settings& settings) {
  if (kind == "instance") return instance_query(rights);
  if (kind == "role") return role_query(rights, settings);
  if (kind == "database") return kDatabases;
  if (kind == "file_setting") return kFileSettings;
  if (kind == "hba") return hba_query(rights);
  if (kind == "ident") return ident_query(rights);
  if (kind == "slot") return slot_query(true);
  if (kind == "subscription") return subscription_query(rights.version, rights.conninfo);
  return setting_query(rights);
}

std::string removed_lines_query() {
  return "SELECT s.name FROM pg_settings s WHERE s.source = 'configuration file' AND NOT s.pending_restart AND NOT "
         "EXISTS (SELECT 1 FROM pg_file_settings f WHERE lower(f.name) = lower(s.name)) ORDER BY s.name";
}

std::string ident_modified_right_query() { return "SELECT " + callable("ident_file_modified") + " AS ident_modified"; }

std::string ident_modified_query() {
  return "SELECT coalesce(driftd.ident_file_modified() > pg_conf_load_time(), false) AS edited_not_reloaded";
}

std::string identity_query() { return "SELECT system_identifier::text AS identity FROM pg_control_system()"; }

std::string health_query() {
  return "SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END AS role, "
         "has_function_privilege('pg_control_system()', 'EXECUTE') AS identity, current_setting('server_version') AS "
         "version";
}

}  // namespace driftd::postgres
