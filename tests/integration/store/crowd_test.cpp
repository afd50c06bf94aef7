// SPDX-License-Identifier: Apache-2.0
// An agent that starts with 50,000 events that wait behind some that fail: real store, real relay.
#include <gtest/gtest.h>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <iostream>
#include <thread>

#include "delivery/relay.hpp"
#include "store/sqlite_store.hpp"
#include "support/patience.hpp"
#include "support/process.hpp"
#include "unit/store/drafts.hpp"

namespace driftd::test {
namespace {

constexpr int kCrowd = 50'000, kSick = 200, kOthers = 500;

/// Refuses the events of resources named `sick`, takes all others.
class PickySink final : public core::Sink {
 public:
  explicit PickySink(std::atomic<int>& got) : got_(got) {}
  core::RetryPolicy policy() const override { return {}; }
  Task<Status> start() override { co_return Status{}; }
  Task<core::Attempt> send(core::StoredEvent event) override {
    if (event.resource.find("sick") != std::string::npos)
      co_return core::Attempt{core::Attempt::Outcome::retry_event, "no", 30'000};
    ++got_;
    co_return core::Attempt{};
  }
  Task<void> stop() override { co_return; }
  std::string describe() const override { return "picky"; }

 private:
  std::atomic<int>& got_;
};

/// One life of an agent's store and relay. Called by the test's thread.
class Life {
 public:
  explicit Life(const TempDir& dir) : begun_(std::chrono::steady_clock::now()) {
    store::Settings settings;
    settings.data_dir = dir.path() / "data";
    store_ = std::move(*store::SqliteStore::open(settings, store_pool_.get_executor(), io_.get_executor(), clock_));
    relay_ = std::make_unique<delivery::Relay>(core_.get_executor(), *store_, clock_);
    relay_->add_sink("ops", "picky", std::make_unique<PickySink>(got));
    thread_ = std::thread([this] { core_.run(); });
    EXPECT_TRUE(wait(relay_->start()));
  }
  ~Life() {
    asio::co_spawn(core_, relay_->stop(), asio::use_future).get();
    work_.reset();
    thread_.join();
    relay_.reset();
    io_.join();
    store_pool_.join();
  }
  void commit(int count, const std::string& name, int resources) {
    EXPECT_TRUE(wait(store_->commit(registration())));
    for (int done = 0; done < count;) {
      std::vector<core::EventDraft> drafts;
      for (; drafts.size() < 500 && done < count; ++done)
        drafts.push_back(event_draft(name + std::to_string(done % resources)));
      EXPECT_TRUE(wait(store_->commit(page_of({}, std::move(drafts)))));
      asio::post(core_, [this] { relay_->wake(); });
    }
  }
  core::SinkView view() {
    std::packaged_task<core::SinkView()> task([this] { return relay_->views().at(0); });
    auto result = task.get_future();
    asio::post(core_, [&task] { task(); });
    return result.get();
  }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(); }
  std::atomic<int> got{0};

 private:
  template <class T>
  T wait(Task<T> task) {
    return asio::co_spawn(core_, std::move(task), asio::use_future).get();
  }
  std::chrono::steady_clock::time_point begun_;
  SystemClock clock_;
  asio::io_context core_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(core_);
  asio::thread_pool io_{2}, store_pool_{1};
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<delivery::Relay> relay_;
  std::thread thread_;
};

TEST(CrowdTest, AStartWith50000ThatWaitBehindSomeThatFailHoldsBackNobodyElse) {
  const TempDir dir;
  {
    Life life(dir);
    life.commit(kCrowd, "sick", kSick);
    ASSERT_TRUE(eventually([&] { return life.view().waiting == kCrowd && life.view().low_water >= kCrowd; }))
        << life.view().waiting;
    life.commit(kOthers, "well", kOthers);
    EXPECT_TRUE(eventually([&] { return life.got == kOthers; })) << life.got << " " << life.view().state;
    std::cout << "first life: " << life.seconds() << " s\n";
  }
  Life life(dir);
  life.commit(kOthers, "well", kOthers);
  EXPECT_TRUE(eventually([&] { return life.got == kOthers; })) << life.got << " " << life.view().state;
  std::cout << "others delivered " << life.seconds() << " s after the start\n";
  EXPECT_LT(life.seconds(), 20 * kPatience);
  EXPECT_EQ(life.view().waiting, kCrowd);
  EXPECT_EQ(life.view().missed_wakeups, 0U);
}

}  // namespace
}  // namespace driftd::test
