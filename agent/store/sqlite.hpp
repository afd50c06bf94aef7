// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace driftd::store {

class Connection;

/// Bytes that are bound as a BLOB. Borrowed.
struct Blob {
  std::string_view bytes;
};

/// A prepared statement on loan from its connection: reset and unbound when it goes. An error of prepare or bind comes
/// out of next() or run(). Never two of one text at once.
class Statement {
 public:
  Statement(Connection& db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Binds parameters 1, 2 ... in order; copies the values.
  template <class... Values>
  Statement& bind(const Values&... values) {
    int index = 0;
    (bind_at(++index, values), ...);
    return *this;
  }
  /// Steps to the next row; false: no more.
  Result<bool> next();
  /// Steps to the end, rows are thrown away.
  Status run();

  std::int64_t integer(int column) const;
  bool is_null(int column) const;
  std::string text(int column) const;  ///< text or blob; empty for null
  std::optional<std::int64_t> maybe_integer(int column) const;
  std::optional<std::string> maybe_text(int column) const;

 private:
  template <std::integral T>
  void bind_at(int index, const T& value) {
    bind_integer(index, static_cast<std::int64_t>(value));
  }
  void bind_at(int index, const std::string& value) { bind_text(index, value); }
  void bind_at(int index, const std::string_view& value) { bind_text(index, value); }
  void bind_at(int index, const Blob& value);
  void bind_at(int index, const std::optional<std::string>& value);
  void bind_at(int index, const std::optional<std::int64_t>& value);
  void bind_integer(int index, std::int64_t value);
  void bind_text(int index, std::string_view value);
  void note(int code);

  Connection& db_;
  sqlite3_stmt* statement_;  // nullptr: prepare failed, the connection says why
  int error_ = 0;
};

/// One connection and its cache of prepared statements, with driftd_crc() (checksums.hpp). One thread at a time.
class Connection {
 public:
  enum class Mode { read_write, read_only };
  /// Opens an existing file. Read-only connections never write and never checkpoint.
  static Result<std::unique_ptr<Connection>> open(const std::string& file, Mode mode);
  explicit Connection(sqlite3* db) : db_(db) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The cached statement of this text.
  Statement statement(std::string_view sql);
  /// Runs statements that give no rows, separated by semicolons.
  Status execute(std::string_view sql);
  /// First column of the first row; 0 when there is none.
  Result<std::int64_t> integer(std::string_view sql);
  std::int64_t changes() const;  ///< rows of the last INSERT, UPDATE, DELETE
  std::int64_t last_rowid() const;
  bool in_transaction() const;
  bool io_failed() const { return io_failed_; }  ///< the disk failed once (SQLITE_IOERR); never taken back
  /// From now on COMMIT leaves the pages in the write-ahead log; the caller brings them into the file.
  void keep_log();
  int log_pages() const { return log_pages_; }  ///< in the write-ahead log behind the last COMMIT since keep_log()
  Error last_error(std::string_view doing);
  sqlite3* handle() { return db_; }

 private:
  sqlite3* db_;
  bool io_failed_ = false;
  int log_pages_ = 0;
  std::unordered_map<std::string, sqlite3_stmt*> statements_;
};

}  // namespace driftd::store
