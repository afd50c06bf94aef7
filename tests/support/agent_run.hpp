// SPDX-License-Identifier: Apache-2.0
// A real store with a real relay on a core thread of its own, for tests of what waits in a store.
#pragma once

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <functional>
#include <future>
#include <thread>

#include "delivery/relay.hpp"
#include "store/sqlite_store.hpp"
#include "support/process.hpp"
#include "unit/store/drafts.hpp"

namespace driftd::test {

/// The store and the relay of one run of an agent, with one sink named `bus`. Only the test's thread calls it.
class AgentRun {
 public:
  using MakeSink = std::function<Result<std::unique_ptr<core::Sink>>(asio::any_io_executor core,
                                                                     asio::any_io_executor io, const Clock& clock)>;
  AgentRun(const TempDir& dir, const MakeSink& make) : AgentRun(dir, make, system_clock()) {}
  /// `clock` must outlive it.
  AgentRun(const TempDir& dir, const MakeSink& make, const Clock& clock) : clock_(clock) {
    store::Settings settings;
    settings.data_dir = dir.path() / "data";
    store_ = std::move(*store::SqliteStore::open(settings, store_pool_.get_executor(), io_.get_executor(), clock_));
    relay_ = std::make_unique<delivery::Relay>(core_.get_executor(), *store_, clock_);
    relay_->add_sink("bus", "test", std::move(*make(core_.get_executor(), io_.get_executor(), clock_)));
    thread_ = std::thread([this] { core_.run(); });
    EXPECT_TRUE(wait(relay_->start()));
  }
  ~AgentRun() {
    wait(relay_->stop());
    work_.reset();
    thread_.join();
    relay_.reset();
    io_.join();
    store_pool_.join();
  }
  void commit(int count) {
    EXPECT_TRUE(wait(store_->commit(registration())));
    for (int done = 0; done < count;) {
      std::vector<core::EventDraft> drafts;
      for (; drafts.size() < 500 && done < count; ++done)
        drafts.push_back(event_draft("r" + std::to_string(done % 3'000), {"bus"}));
      EXPECT_TRUE(wait(store_->commit(page_of({}, std::move(drafts)))));
    }
    on_core([this] {
      relay_->wake();
      return 0;
    });
  }
  /// Commits one event of slightly more than `bytes`.
  void commit_large(std::size_t bytes) {
    EXPECT_TRUE(wait(store_->commit(registration())));
    core::EventDraft draft = large_draft("large", bytes);
    draft.sinks = {"bus"};
    EXPECT_TRUE(wait(store_->commit(page_of({}, {std::move(draft)}))));
    on_core([this] {
      relay_->wake();
      return 0;
    });
  }
  core::SinkTotals totals() {
    const auto sink_totals = wait(store_->sink_totals());
    return sink_totals && !sink_totals->empty() ? sink_totals->front() : core::SinkTotals{};
  }
  core::SinkView view() {
    return on_core([this] { return relay_->views().at(0); });
  }

 private:
  template <class T>
  T wait(Task<T> task) {
    return asio::co_spawn(core_, std::move(task), asio::use_future).get();
  }
  void wait(Task<void> task) { asio::co_spawn(core_, std::move(task), asio::use_future).get(); }
  template <class F>
  std::invoke_result_t<F> on_core(F f) {
    std::packaged_task<std::invoke_result_t<F>()> task(std::move(f));
    auto result = task.get_future();
    asio::post(core_, [&task] { task(); });
    return result.get();
  }

  static const Clock& system_clock() {
    static const SystemClock clock;
    return clock;
  }

  const Clock& clock_;
  asio::io_context core_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(core_);
  asio::thread_pool store_pool_{1}, io_{4};
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<delivery::Relay> relay_;
  std::thread thread_;
};

}  // namespace driftd::test
