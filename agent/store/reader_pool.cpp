// SPDX-License-Identifier: Apache-2.0
#include <sqlite3.h>

#include "base/log.hpp"
#include "core/value/path.hpp"
#include "store/state.hpp"

namespace driftd::store {
namespace {

constexpr int kStepsBetweenLooks = 10'000;

int past_deadline(void* until) {
  return std::chrono::steady_clock::now() > *static_cast<std::chrono::steady_clock::time_point*>(until) ? 1 : 0;
}

std::string_view text_of(sqlite3_value* value) {
  const auto* data = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_value_bytes(value))};
}

/// name_matches(glob, name): the agent's globs, not SQLite's.
void name_matches(sqlite3_context* context, int, sqlite3_value** values) {
  const bool match = core::Glob::of_name(text_of(values[0])).matches(text_of(values[1]));
  sqlite3_result_int(context, match ? 1 : 0);
}

}  // namespace

Result<std::unique_ptr<Connection>> ReaderPool::borrow() {
  {
    const std::lock_guard guard(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  DRIFTD_TRY(auto connection, Connection::open(file_, Connection::Mode::read_only));
  sqlite3_create_function(connection->handle(), "name_matches", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr,
                          name_matches, nullptr, nullptr);
  return connection;
}

void ReaderPool::give_back(std::unique_ptr<Connection> connection) {
  const std::lock_guard guard(mutex_);
  idle_.push_back(std::move(connection));
}

void ReaderPool::close() {
  const std::lock_guard guard(mutex_);
  idle_.clear();
}

ReadTransaction::ReadTransaction(ReaderPool& pool, std::unique_ptr<Connection> connection)
    : pool_(pool),
      connection_(std::move(connection)),
      until_(std::chrono::steady_clock::now() + pool.longest_read()) {
  sqlite3_progress_handler(connection_->handle(), kStepsBetweenLooks, past_deadline, &until_);
  const auto begun = connection_->statement("BEGIN").run();
  if (!begun) log::room("store").warn("a reader began no transaction: {}", begun.error().message);
}

ReadTransaction::~ReadTransaction() {
  sqlite3_progress_handler(connection_->handle(), 0, nullptr, nullptr);
  const auto ended = connection_->in_transaction() ? connection_->statement("COMMIT").run() : Status{};
  if (ended) {
    pool_.give_back(std::move(connection_));
  } else {
    log::room("store").warn("a reader's transaction did not end, its connection is closed: {}", ended.error().message);
  }
}

}  // namespace driftd::store
