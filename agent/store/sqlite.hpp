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

/// Bytes that are bound as a BLOB, without a copy: they must outlive the statement.
struct Blob {
  std::string_view bytes;
};
/// Text, or NULL, that is bound without a copy: it must outlive the statement.
struct Borrowed {
  const std::optional<std::string>& text;
};

/// A prepared statement borrowed from its connection, which the destructor resets and unbinds. An error of prepare or
/// bind is returned by next() or run(). Never use two statements of the same text at once.
class Statement {
 public:
  Statement(Connection& db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Binds parameters 1, 2 ... in order; copies the values but Blob and Borrowed.
  template <class... Values>
  Statement& bind(const Values&... values) {
    int index = 0;
    (bind_at(++index, values), ...);
    return *this;
  }
  /// Steps to the next row. Returns false if there is none.
  Result<bool> next();
  /// Steps to the end and discards the rows.
  Status run();

  std::int64_t integer(int column) const;
  bool is_null(int column) const;
  std::string text(int column) const;  ///< text or blob; empty for NULL
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
  void bind_at(int index, const Borrowed& value);
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

  /// Returns the cached statement of this text.
  Statement statement(std::string_view sql);
  /// Runs statements that return no rows, separated by semicolons.
  Status execute(std::string_view sql);
  /// Returns the first column of the first row; 0 if there is no row.
  Result<std::int64_t> integer(std::string_view sql);
  std::int64_t changes() const;  ///< rows of the last INSERT, UPDATE, DELETE
  std::int64_t last_rowid() const;
  bool in_transaction() const;
  bool io_failed() const { return io_failed_; }  ///< true for ever once the disk has failed (SQLITE_IOERR)
  /// Makes COMMIT leave its pages in the write-ahead log; the caller brings them into the file.
  void keep_log();
  int log_pages() const { return log_pages_; }  ///< pages in the write-ahead log after the last COMMIT since keep_log()
  Error last_error(std::string_view doing);
  sqlite3* handle() { return db_; }

 private:
  sqlite3* db_;
  bool io_failed_ = false;
  int log_pages_ = 0;
  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, sqlite3_stmt*, TextHash, std::equal_to<>> statements_;
};

}  // namespace driftd::store
