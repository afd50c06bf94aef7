// SPDX-License-Identifier: Apache-2.0
// A store on a real file with real threads; the test thread is the core thread.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <latch>
#include <optional>
#include <vector>

#include "store/sqlite_store.hpp"
#include "support/process.hpp"
#include "unit/store/drafts.hpp"

namespace driftd::test {

inline constexpr Nanos kSecond = 1'000'000'000;
inline constexpr Nanos kNoon = 1'760'000'000 * kSecond;

/// A clock that stands still until `now` is set. `wrong` is added to the wall clock only.
class SetClock final : public Clock {
 public:
  Nanos wall() const override { return now + wrong; }
  std::chrono::steady_clock::time_point mono() const override {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(now - kNoon + kSecond));
  }
  std::atomic<Nanos> now{kNoon}, wrong{0};
};

/// The executors of an agent and a store opened on them; close() and open() are a restart.
class Bench {
 public:
  /// Returns once its threads run: a test may fork, and a lock of AddressSanitizer's allocator that a starting thread
  /// holds would stay locked in the child for ever.
  explicit Bench(std::string data_dir) : data_dir_(std::move(data_dir)) {
    asio::post(store_thread_, [this] { running_.arrive_and_wait(); });
    for (int i = 0; i < 2; ++i) asio::post(io_pool_, [this] { running_.arrive_and_wait(); });
    running_.arrive_and_wait();
  }
  ~Bench() {
    store_.reset();
    store_thread_.join();
    io_pool_.join();
  }

  Status open() {
    settings.data_dir = data_dir_;
    auto opened = store::SqliteStore::open(settings, store_thread_.get_executor(), io_pool_.get_executor(), clock);
    if (!opened) return fail(opened.error());
    store_ = std::move(*opened);
    return {};
  }
  void close() {
    (void)wait(store_->sinks());  // waits until the store thread has finished earlier work
    store_.reset();
  }
  store::SqliteStore& operator*() { return *store_; }
  store::SqliteStore* operator->() { return store_.get(); }

  /// Runs tasks concurrently to their end.
  template <class T>
  std::vector<T> wait_all(std::vector<Task<T>> tasks) {
    std::vector<std::optional<T>> results(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      asio::co_spawn(core_, std::move(tasks[i]), [&results, i](std::exception_ptr error, T value) {
        if (error) std::rethrow_exception(error);
        results[i] = std::move(value);
      });
    }
    core_.restart();
    core_.run();
    std::vector<T> out;
    for (auto& result : results) out.push_back(std::move(result.value()));
    return out;
  }
  template <class T>
  T wait(Task<T> task) {
    std::vector<Task<T>> one;
    one.push_back(std::move(task));
    return std::move(wait_all(std::move(one)).front());
  }
  /// Does the same for a call that must succeed.
  template <class T>
  T get(Task<Result<T>> task) {
    auto result = wait(std::move(task));
    if (!result) throw std::runtime_error(result.error().message);
    if constexpr (!std::is_void_v<T>) return std::move(*result);
  }

  SetClock clock;
  store::Settings settings;

 private:
  std::string data_dir_;
  std::latch running_{4};
  asio::io_context core_{1};
  asio::thread_pool store_thread_{1};
  asio::thread_pool io_pool_{2};
  std::unique_ptr<store::SqliteStore> store_;
};

/// Runs SQL on the file behind the store's back, as a broken disk or a person would.
inline void tamper(const std::string& file, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  char* message = nullptr;
  sqlite3_busy_timeout(db, 5000);
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
  sqlite3_close(db);
}

/// An open store with one registered backend, `orders`.
class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto opened = bench.open();
    ASSERT_TRUE(opened) << opened.error().message;
    bench.get(bench->commit(registration()));
  }
  void restart() {
    bench.close();
    const auto opened = bench.open();
    ASSERT_TRUE(opened) << opened.error().message;
  }
  std::string file() const { return dir.file("data/store.db"); }
  /// Commits `count` events to `ops`. Returns their seqs in the outbox.
  std::vector<std::int64_t> emit(int count, std::vector<std::string> sinks = {"ops"}) {
    std::vector<core::EventDraft> drafts;
    for (int i = 0; i < count; ++i) drafts.push_back(event_draft("r" + std::to_string(i), sinks));
    std::vector<std::int64_t> seqs;
    for (const auto& event : bench.get(bench->commit(page_of({}, drafts))).events) seqs.push_back(event.stamp.seq);
    return seqs;
  }
  core::SinkTotals book(const std::string& sink) {
    for (auto& book : bench.get(bench->sink_totals())) {
      if (book.sink == sink) return book;
    }
    return {};
  }

  TempDir dir;
  Bench bench{dir.file("data")};
};

}  // namespace driftd::test
