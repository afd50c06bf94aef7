// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite.hpp"

#include <sqlite3.h>

#include "base/digest.hpp"

namespace driftd::store {
namespace {

Code code_of(int sqlite_code) {
  switch (sqlite_code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::corrupt;
    case SQLITE_FULL:
      return Code::budget;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::unavailable;
    case SQLITE_INTERRUPT:
      return Code::deadline;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return Code::denied;
    default:
      return Code::internal;
  }
}

/// driftd_crc(…): CRC-32C over the values, each with its type and length.
void row_crc(sqlite3_context* context, int count, sqlite3_value** values) {
  std::uint32_t crc = 0;
  const auto add = [&crc](const void* data, std::size_t size) {
    if (size != 0) crc = crc32c({static_cast<const char*>(data), size}, crc);
  };
  for (int i = 0; i < count; ++i) {
    const char type = static_cast<char>(sqlite3_value_type(values[i]));
    add(&type, 1);
    if (type == SQLITE_INTEGER) {
      const std::int64_t number = sqlite3_value_int64(values[i]);
      add(&number, sizeof number);
    } else if (type != SQLITE_NULL) {
      const void* data = sqlite3_value_blob(values[i]);
      const auto size = static_cast<std::uint64_t>(sqlite3_value_bytes(values[i]));
      add(&size, sizeof size);
      add(data, size);
    }
  }
  sqlite3_result_int64(context, crc);
}

/// SQLite counts what it allocates, under a lock of the whole process, and nobody reads that.
void count_no_memory() { [[maybe_unused]] static const int set = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

}  // namespace

Statement::~Statement() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void Statement::note(int code) {
  if (code != SQLITE_OK && error_ == SQLITE_OK) error_ = code;
}

void Statement::bind_integer(int index, std::int64_t value) { note(sqlite3_bind_int64(statement_, index, value)); }

void Statement::bind_text(int index, std::string_view value) {
  const char* data = value.data() == nullptr ? "" : value.data();
  note(sqlite3_bind_text64(statement_, index, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Statement::bind_at(int index, const Blob& value) {
  const char* data = value.bytes.data() == nullptr ? "" : value.bytes.data();
  note(sqlite3_bind_blob64(statement_, index, data, value.bytes.size(), SQLITE_STATIC));
}

void Statement::bind_at(int index, const Borrowed& value) {
  if (value.text)
    note(sqlite3_bind_text64(statement_, index, value.text->data(), value.text->size(), SQLITE_STATIC, SQLITE_UTF8));
}

void Statement::bind_at(int index, const std::optional<std::string>& value) {
  if (value) bind_text(index, *value);
}

void Statement::bind_at(int index, const std::optional<std::int64_t>& value) {
  if (value) bind_integer(index, *value);
}

Result<bool> Statement::next() {
  if (statement_ == nullptr) return fail(db_.last_error("prepare"));
  if (error_ != SQLITE_OK) return fail(db_.last_error(sqlite3_sql(statement_)));
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return fail(db_.last_error(sqlite3_sql(statement_)));
}

Status Statement::run() {
  while (true) {
    DRIFTD_TRY(const bool row, next());
    if (!row) return {};
  }
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

std::string Statement::text(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::optional<std::int64_t> Statement::maybe_integer(int column) const {
  if (is_null(column)) return std::nullopt;
  return integer(column);
}

std::optional<std::string> Statement::maybe_text(int column) const {
  if (is_null(column)) return std::nullopt;
  return text(column);
}

Result<std::unique_ptr<Connection>> Connection::open(const std::string& file, Mode mode) {
  const int flags = (mode == Mode::read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_NOMUTEX;
  count_no_memory();
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &db, flags, nullptr);
  auto connection = std::make_unique<Connection>(db);
  if (code != SQLITE_OK) return fail(connection->last_error("open " + file));
  sqlite3_extended_result_codes(db, 1);
  sqlite3_busy_timeout(db, 5000);
  sqlite3_create_function(db, "driftd_crc", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, row_crc, nullptr, nullptr);
  if (mode == Mode::read_only) {
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    DRIFTD_CHECK(connection->execute("PRAGMA query_only = ON"));
  }
  return connection;
}

Connection::~Connection() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

void Connection::keep_log() {
  const auto count = [](void* pages, sqlite3*, const char*, int now) {
    *static_cast<int*>(pages) = now;
    return SQLITE_OK;
  };
  sqlite3_wal_hook(db_, count, &log_pages_);  // replaces SQLite's own hook, which checkpoints within COMMIT
}

Statement Connection::statement(std::string_view sql) {
  const auto found = statements_.find(sql);
  if (found != statements_.end()) return {*this, found->second};
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (statement != nullptr) statements_.emplace(std::string(sql), statement);
  return {*this, statement};
}

Status Connection::execute(std::string_view sql) {
  if (sqlite3_exec(db_, std::string(sql).c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return fail(last_error(sql));
  return {};
}

Result<std::int64_t> Connection::integer(std::string_view sql) {
  auto query = statement(sql);
  DRIFTD_TRY(const bool row, query.next());
  return row ? query.integer(0) : 0;
}

std::int64_t Connection::changes() const { return sqlite3_changes64(db_); }
std::int64_t Connection::last_rowid() const { return sqlite3_last_insert_rowid(db_); }
bool Connection::in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }

Error Connection::last_error(std::string_view doing) {
  const int code = sqlite3_extended_errcode(db_);
  io_failed_ = io_failed_ || (code & 0xff) == SQLITE_IOERR;
  return {code_of(code), "store: " + std::string(sqlite3_errmsg(db_)) + " (SQLite code " + std::to_string(code) +
                             ") in: " + std::string(doing.substr(0, 120))};
}

}  // namespace driftd::store
