// SPDX-License-Identifier: Apache-2.0
#include "store/leftovers.hpp"

#include <sqlite3.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include "store/migrations.hpp"
#include "store/sinks.hpp"
#include "store/sqlite.hpp"

namespace driftd::store {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOpenDrifts =
    "SELECT b.name, count(*), coalesce((SELECT f.name FROM backend f WHERE f.uid = json_extract(b.notes, "
    "'$.discovered_by')), '') "
    "FROM drift d JOIN backend b ON b.uid = d.backend WHERE d.open = 1 AND b.deleted_ns IS NULL "
    "AND json_extract(b.notes, '$.definition') IS NULL GROUP BY b.uid ORDER "
    "BY b.name";

/// A database in WAL mode without a log is complete, but SQLite would create a log to read it, which would belong to
/// the reading user; `immutable` prevents that. One with a log is read together with the log, through the index that
/// its writer made (`readonly_shm`).
std::string untouched_uri(const fs::path& file) {
  std::string out = "file:";
  for (const char c : file.string()) {
    const char* escaped = c == '%' ? "%25" : c == '?' ? "%3f" : c == '#' ? "%23" : nullptr;
    out += escaped == nullptr ? std::string(1, c) : std::string(escaped);
  }
  std::error_code missing;
  const auto log = fs::file_size(file.string() + "-wal", missing);
  return out + (missing || log == 0 ? "?immutable=1" : "?readonly_shm=1");
}

Result<std::unique_ptr<Connection>> open_untouched(const fs::path& file) {
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(untouched_uri(file).c_str(), &db,
                                   SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_FULLMUTEX, nullptr);
  auto connection = std::make_unique<Connection>(db);
  if (code != SQLITE_OK) return fail(connection->last_error("open " + file.string()));
  sqlite3_busy_timeout(db, 1000);
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return connection;
}

Status check_store(Connection& db, const fs::path& file) {
  DRIFTD_TRY(const bool ours, is_ours(db));
  if (!ours) return fail(Code::unavailable, file.string() + " is not a store of driftd");
  DRIFTD_TRY(const auto version, db.integer("PRAGMA user_version"));
  if (version == migrations().back().number) return {};
  return fail(Code::unavailable, file.string() + " is a store of another version of driftd (version " +
                                     std::to_string(version) + ", this one writes " +
                                     std::to_string(migrations().back().number) + ")");
}

Result<Leftovers> read_all(Connection& db, const fs::path& file) {
  DRIFTD_CHECK(check_store(db, file));
  Leftovers out;
  DRIFTD_TRY(const auto totals, read_totals(db));
  for (const auto& sink : totals) {
    if (sink.pending > 0 || sink.dead > 0) out.sinks.push_back({sink.sink, sink.pending, sink.dead});
  }
  auto query = db.statement(kOpenDrifts);
  while (true) {
    DRIFTD_TRY(const bool more, query.next());
    if (!more) return out;
    out.backends.push_back({query.text(0), query.integer(1), query.text(2)});
  }
}

}  // namespace

Result<Leftovers> read_leftovers(const fs::path& data_dir) {
  const fs::path file = data_dir / "store.db";
  if (::access(file.c_str(), R_OK) != 0) {
    const Code code = errno == ENOENT || errno == ENOTDIR ? Code::not_found : Code::unavailable;
    return fail(code, file.string() + ": " + std::strerror(errno));
  }
  auto db = open_untouched(file);
  auto out = db ? read_all(**db, file) : Result<Leftovers>(fail(db.error()));
  if (!out && out.error().code != Code::unavailable) return fail(Code::unavailable, out.error().message);
  return out;
}

}  // namespace driftd::store
