// SPDX-License-Identifier: Apache-2.0
// The real sidecar as a process, and a real store with the real runner and client in this one.
#pragma once

#include <gtest/gtest.h>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "delivery/change_log_runner.hpp"
#include "grpc/change_log_settings.hpp"
#include "store/sqlite_store.hpp"
#include "support/process.hpp"

namespace driftd::test {

/// `driftd changelog-sidecar`, which writes to a file.
class Sidecar {
 public:
  /// `options` come after --output.
  Sidecar(std::string listen, std::string file, std::vector<std::string> options = {});
  void start();
  void kill() { child_.kill(); }  ///< SIGKILL
  int stop();                     ///< SIGTERM; returns the exit code
  void freeze() { test::freeze(child_.pid()); }
  void thaw() { child_.signal(SIGCONT); }
  std::string log() const { return read_file(log_); }
  std::uintmax_t size() const;  ///< of the file
  /// Returns the lines that end. Each must be a JSON object.
  std::vector<nlohmann::json> lines() const;
  /// Returns how often each operation is in the file.
  std::map<std::string, int> counts() const;

 private:
  std::string listen_, file_, log_;
  std::vector<std::string> options_;
  Child child_;
};

/// A store with a runner, as in an agent. Only the test's thread calls it.
class ChangeLogRun {
 public:
  ChangeLogRun(const std::string& data_dir, rpc::ChangeLogTarget target, std::int64_t max_backlog_bytes = 1 << 30);
  ~ChangeLogRun();
  /// Commits operations with these numbers, as one page.
  void commit(int first, int count, std::size_t padding = 0);
  /// Commits `count` operations of a page every 50 ms, until stop_producing().
  void produce(int count);
  void stop_producing();
  int produced() const { return produced_; }
  core::ChangeLogView view();
  core::ChangeLogPosition position();

 private:
  template <class T>
  T wait(Task<T> task);
  Task<void> produce_pages(int count);

  SystemClock clock_;
  asio::io_context core_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(core_);
  asio::thread_pool store_pool_{1}, io_{2};
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<core::ChangeLogStore> log_;
  std::unique_ptr<core::ChangeLogReceiver> receiver_;
  std::shared_ptr<delivery::ChangeLogRunner> runner_;
  std::atomic<bool> producing_{false}, stops_{false};
  std::atomic<int> produced_{0};
  std::thread thread_;
};

/// Opens a store in this folder, commits operations that have ended, and closes it.
void store_operations(const std::string& data_dir, int count);

}  // namespace driftd::test
