// SPDX-License-Identifier: Apache-2.0
#include "postgres/mapping.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "driftd/sdk/scope.hpp"
#include "postgres/catalog.hpp"

namespace driftd::postgres {
namespace {

using nlohmann::json;

json list(const Fields& row, std::string_view column) {
  json out = json::parse(row.find(column).value_or("[]"), nullptr, false);
  if (out.is_discarded()) throw sdk::Failure(DRIFTD_CORRUPT, "the server answered JSON that cannot be read");
  return out;
}

json nullable(const Fields& row, std::string_view column) {
  const auto found = row.find(column);
  return found ? json(*found) : json(nullptr);
}

/// Whose way of printing expressions and definitions the body shows: the basis of those attributes in the schema.
void add_printer(const Origin& from, json& body, sdk::Record& record) {
  body["printed_by"] = std::to_string(from.version / 10000);
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
json published_tables(const Fields& row) {
  json out = json::array();
  for (auto table : list(row, "tables")) {
    std::erase_if(table.get_ref<json::object_t&>(), [](const auto& member) { return member.second.is_null(); });
    out.push_back(std::move(table));
  }
  return out;
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
    out.body = json{{"owner", row.text("owner")}, {"grants", list(row, "grants")}}.dump();
    return out;
  });
}

Records map_publications(const Rows& rows, const Origin& from) {
  return each_row(rows, [&](const Fields& row) {
    sdk::Record out = record_of("publication", row, from.database, row.text("name"));
    json body = options(row, {"all_tables", "via_root"});
    body.update({{"owner", row.text("owner")},
                 {"operations", list(row, "operations")},
                 {"tables", published_tables(row)},
                 {"schemas", list(row, "schemas")}});
    add_printer(from, body, out);
    out.body = body.dump();
    return out;
  });
}

Records map_default_privileges(const Rows& rows, const Origin& from) {
  return each_row(rows, [&](const Fields& row) {
    const auto schema = row.find("schema");
    sdk::Record out = record_of("default_privileges", row, from.database,
                                row.text("role") + ":" + row.text("objects") + (schema ? ":" + *schema : ""));
    out.body = json{{"grants", list(row, "grants")}}.dump();
    return out;
  });
}

Records map_fingerprints(const Rows& rows, const Origin& from, const std::vector<std::string>& schemas) {
  Records out;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const Fields row(rows, i);
    const auto covers = [&](const auto& glob) { return sdk::glob_match(glob, row.text("schema")); };
    if (std::none_of(schemas.begin(), schemas.end(), covers)) continue;
    sdk::Record record = record_of("table_fingerprint", row, from.database, row.text("schema") + "." + row.text("name"));
    json body = options(row, {"unlogged", "row_security", "force_row_security"});
    for (const char* name : {"type", "owner", "replica_identity", "columns", "constraints", "indexes", "policies", "triggers"}) {
      body[name] = row.text(name);
    }
    if (row.find("definition")) body["definition"] = row.text("definition");
    body["grants"] = list(row, "grants");
    add_printer(from, body, record);
    record.body = body.dump();
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
                 {"publications", list(row, "publications")},
                 {"synchronous_commit", row.text("synchronous_commit")}});
    for (const char* name : {"streaming", "origin"}) {
      if (row.find(name)) body[name] = row.text(name);
    }
    if (missing_right.empty()) body["conninfo"] = row.text("conninfo");
    else out.unread.push_back({"conninfo", DRIFTD_DENIED, "needs " + missing_right});
    out.body = body.dump();
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
