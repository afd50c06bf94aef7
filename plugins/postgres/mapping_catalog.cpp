// SPDX-License-Identifier: Apache-2.0
#include "postgres/mapping.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "driftd/sdk/scope.hpp"
#include "postgres/catalog.hpp"

namespace driftd::postgres {
namespace {

using nlohmann::json;

json nullable(const Fields& row, std::string_view column) {
  const auto found = row.find(column);
  return found ? json(*found) : json(nullptr);
}

/// 1 (nothing) did not tell a NULL from what follows it; 2 counted the order of a policy's roles and of column grants.
constexpr const char* kDigests = "/3";

/// Whose way of printing expressions and definitions the body shows, and with digests in which way of ours they were
/// made: the basis of those attributes in the schema. What was made on another basis is not compared.
void add_printer(const Origin& from, json& body, sdk::Record& record, const std::string& way = {}) {
  body["printed_by"] = std::to_string(from.version / 10000) + way;
  record.schema_revision = 2;
}

sdk::Record record_of(const char* kind, const Fields& row, const std::string& database, const std::string& name) {
  sdk::Record out;
  out.kind = kind;
  out.id = database.empty() ? name : database + "." + name;
  out.external_name = row.text("oid");
  if (!database.empty()) out.metadata["database"] = database;
  return out;
}

template <class Each>
Records each_row(const Rows& rows, Each each) {
  Records out;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) out.push_back(each(Fields(rows, i)));
  return out;
}

/// `schema.table` → {columns, filter}; one without columns publishes all of them.
void put_published_tables(const Fields& row, json& body, sdk::Record& record) {
  put_list(row, "tables", "tables", body, record);
  if (!body.contains("tables")) return;
  for (auto& table : body["tables"]) {
    std::erase_if(table.get_ref<json::object_t&>(), [](const auto& member) { return member.second.is_null(); });
  }
}

json options(const Fields& row, std::initializer_list<const char*> flags) {
  json out = json::object();
  for (const char* flag : flags) {
    if (row.find(flag)) out[flag] = row.flag(flag);
  }
  return out;
}

}  // namespace

Records map_extensions(const Rows& rows, const Origin& from) {
  return each_row(rows, [&](const Fields& row) {
    sdk::Record out = record_of("extension", row, from.database, row.text("name"));
    out.body = json{{"version", row.text("version")}, {"schema", row.text("schema")}}.dump();
    return out;
  });
}

Records map_schemas(const Rows& rows, const Origin& from) {
  return each_row(rows, [&](const Fields& row) {
    sdk::Record out = record_of("schema", row, from.database, row.text("name"));
    json body{{"owner", row.text("owner")}};
    put_list(row, "grants", "grants", body, out);
    fit(out, std::move(body));
    return out;
  });
}

Records map_publications(const Rows& rows, const Origin& from) {
  return each_row(rows, [&](const Fields& row) {
    sdk::Record out = record_of("publication", row, from.database, row.text("name"));
    json body = options(row, {"all_tables", "via_root"});
    body["owner"] = row.text("owner");
    put_list(row, "operations", "operations", body, out);
    put_published_tables(row, body, out);
    put_list(row, "schemas", "schemas", body, out);
    add_printer(from, body, out);
    fit(out, std::move(body));
    return out;
  });
}

Records map_default_privileges(const Rows& rows, const Origin& from) {
  return each_row(rows, [&](const Fields& row) {
    const auto schema = row.find("schema");
    sdk::Record out = record_of("default_privileges", row, from.database,
                                row.text("role") + ":" + row.text("objects") + (schema ? ":" + *schema : ""));
    json body = json::object();
    put_list(row, "grants", "grants", body, out);
    fit(out, std::move(body));
    return out;
  });
}

Records map_fingerprints(const Rows& rows, const Origin& from, const std::vector<std::string>& schemas) {
  Records out;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const Fields row(rows, i);
    const auto covers = [&](const auto& glob) { return sdk::glob_match(glob, row.text("schema")); };
    if (std::none_of(schemas.begin(), schemas.end(), covers)) continue;
    sdk::Record record =
        record_of("table_fingerprint", row, from.database, row.text("schema") + "." + row.text("name"));
    json body = options(row, {"unlogged", "row_security", "force_row_security"});
    for (const char* name :
         {"type", "owner", "replica_identity", "columns", "constraints", "indexes", "policies", "triggers"}) {
      body[name] = row.text(name);
    }
    if (row.find("definition")) body["definition"] = row.text("definition");
    put_list(row, "grants", "grants", body, record);
    add_printer(from, body, record, kDigests);
    fit(record, std::move(body));
    out.push_back(std::move(record));
  }
  return out;
}

Records map_subscriptions(const Rows& rows, const std::string& missing_right) {
  return each_row(rows, [&](const Fields& row) {
    sdk::Record out = record_of("subscription", row, row.text("database"), row.text("name"));
    json body = options(row, {"enabled", "binary", "two_phase", "disable_on_error"});
    body.update({{"owner", row.text("owner")},
                 {"slot", nullable(row, "slot")},
                 {"synchronous_commit", row.text("synchronous_commit")}});
    put_list(row, "publications", "publications", body, out);
    for (const char* name : {"streaming", "origin"}) {
      if (row.find(name)) body[name] = row.text(name);
    }
    if (missing_right.empty())
      body["conninfo"] = row.text("conninfo");
    else
      out.unread.push_back({"conninfo", DRIFTD_DENIED, "needs " + missing_right});
    fit(out, std::move(body));
    return out;
  });
}

Records map_slots(const Rows& rows) {
  return each_row(rows, [&](const Fields& row) {
    sdk::Record out = record_of("slot", row, {}, row.text("name"));
    out.body = json{{"type", row.text("type")},
                    {"plugin", nullable(row, "plugin")},
                    {"database", nullable(row, "database")},
                    {"two_phase", row.flag("two_phase")}}
                   .dump();
    out.status = json{{"active", row.flag("active")},
                      {"wal_status", nullable(row, "wal_status")},
                      {"retained_bytes", nullable(row, "retained_bytes")},
                      {"safe_wal_size", nullable(row, "safe_wal_size")}}
                     .dump();
    return out;
  });
}

}  // namespace driftd::postgres
