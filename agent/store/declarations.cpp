// SPDX-License-Identifier: Apache-2.0
// What sources declare about other backends' resources.
#include "store/fields.hpp"
#include "store/rows.hpp"
#include "store/state.hpp"

namespace driftd::store {
namespace {

using Entries = std::vector<core::DeclaredEntry>;
using Declarations = std::vector<core::Declaration>;

Result<Entries> read_entries(Connection& db, const char* column, const std::string& value) {
  Entries out;
  auto query = db.statement("SELECT source, target, kind, name, digest_low, digest_high FROM declaration WHERE " +
                            std::string(column) + " = ?");
  query.bind(value);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    core::DeclaredEntry entry;
    entry.source_uid = query.text(0);
    entry.target = query.text(1);
    entry.id = {query.text(2), query.text(3)};
    entry.digest = {static_cast<std::uint64_t>(query.integer(4)), static_cast<std::uint64_t>(query.integer(5))};
    out.push_back(std::move(entry));
  }
}

Status read_of(Connection& db, const std::string& target, const core::ResourceId& id, Declarations& out) {
  auto query = db.statement(
      "SELECT d.source, b.name, d.digest_low, d.digest_high, d.metadata, d.body FROM declaration d "
      "JOIN backend b ON b.uid = d.source WHERE d.target = ? AND d.kind = ? AND d.name = ? ORDER BY b.name");
  query.bind(target, id.kind, id.id);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return {};
    core::Declaration one;
    one.source_uid = query.text(0);
    one.source = query.text(1);
    one.id = id;
    one.digest = {static_cast<std::uint64_t>(query.integer(2)), static_cast<std::uint64_t>(query.integer(3))};
    DRIFTD_TRY(one.metadata, parse_strings(query.text(4)));
    one.body = query.text(5);
    out.push_back(std::move(one));
  }
}

Result<Declarations> read_all(Connection& db, const std::string& target, const std::vector<core::ResourceId>& ids) {
  Declarations out;
  for (const auto& id : ids) DRIFTD_CHECK(read_of(db, target, id, out));
  return out;
}

}  // namespace

Status write_declaration(Connection& db, const core::DeclarationWrite& write) {
  const core::Declaration& one = write.declaration;
  if (write.withdrawn) {
    return db.statement("DELETE FROM declaration WHERE target = ? AND kind = ? AND name = ? AND source = ?")
        .bind(write.target, one.id.kind, one.id.id, one.source_uid)
        .run();
  }
  return db
      .statement(
          "INSERT OR REPLACE INTO declaration (target, kind, name, source, digest_low, digest_high, metadata, body, "
          "crc) "
          "VALUES (?1,?2,?3,?4,?5,?6,?7,?8, driftd_crc(?1,?2,?3,?4,?5,?6,?7,?8))")
      .bind(write.target, one.id.kind, one.id.id, one.source_uid, one.digest.low, one.digest.high,
            to_text(one.metadata), one.body)
      .run();
}

Task<Result<Entries>> SqliteStore::declared_by(std::string source_uid) {
  auto read = [uid = std::move(source_uid)](Connection& db) { return read_entries(db, "source", uid); };
  auto entries = co_await on_store(state_, std::move(read));
  co_return entries;
}

Task<Result<Entries>> SqliteStore::declared_of(std::string target) {
  auto read = [name = std::move(target)](Connection& db) { return read_entries(db, "target", name); };
  auto entries = co_await on_store(state_, std::move(read));
  co_return entries;
}

Task<Result<Declarations>> SqliteStore::declarations(std::string target, std::vector<core::ResourceId> ids) {
  auto read = [name = std::move(target), ids = std::move(ids)](Connection& db) { return read_all(db, name, ids); };
  auto rows = co_await on_store(state_, std::move(read));
  co_return rows;
}

}  // namespace driftd::store
