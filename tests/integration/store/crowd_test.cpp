// SPDX-License-Identifier: Apache-2.0
// An agent that starts with 50,000 events in its store, all of which wait behind failing events of the same resources.
// The store and the relay are real.
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

constexpr int kWaiting = 50'000, kSickResources = 200, kOthers = 500;

/// Refuses each event of a resource whose name contains `sick`, and accepts all others.
class PickySink final : public core::Sink {
 public:
  explicit PickySink(std::atomic<int>& accepted) : accepted_(accepted) {}
  core::RetryPolicy policy() const override { return {}; }
  Task<Status> start() override { co_return Status{}; }
  Task<core::Attempt> send(core::StoredEvent event) override {
    if (event.resource.find("sick") != std::string::npos)
      co_return core::Attempt{core::Attempt::Outcome::retry_event, "no", 30'000};
    ++accepted_;
    co_return core::Attempt{};
  }
  Task<void> stop() override { co_return; }
  std::string describe() const override { return "picky"; }

 private:
  std::atomic<int>& accepted_;
};

/// The store and the relay of one run of an agent. Only the test's thread calls it.
class AgentRun {
 public:
  explicit AgentRun(const TempDir& dir) : begun_(std::chrono::steady_clock::now()) {
    store::Settings settings;
    settings.data_dir = dir.path() / "data";
    store_ = std::move(*store::SqliteStore::open(settings, store_pool_.get_executor(), io_.get_executor(), clock_));
    relay_ = std::make_unique<delivery::Relay>(core_.get_executor(), *store_, clock_);
    relay_->add_sink("ops", "picky", std::make_unique<PickySink>(accepted));
    thread_ = std::thread([this] { core_.run(); });
    EXPECT_TRUE(wait(relay_->start()));
  }
  ~AgentRun() {
    asio::co_spawn(core_, relay_->stop(), asio::use_future).get();
    work_.reset();
    thread_.join();
    relay_.reset();
    io_.join();
    store_pool_.join();
  }
  /// Commits `count` events, spread over so many resources, whose names begin with `name`.
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
  double seconds_since_start() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  }
  std::atomic<int> accepted{0};

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
    AgentRun agent(dir);
    agent.commit(kWaiting, "sick", kSickResources);
    ASSERT_TRUE(eventually([&] { return agent.view().waiting == kWaiting && agent.view().low_water >= kWaiting; }))
        << agent.view().waiting;
    agent.commit(kOthers, "well", kOthers);
    EXPECT_TRUE(eventually([&] { return agent.accepted == kOthers; })) << agent.accepted << " " << agent.view().state;
    std::cout << "the first run took " << agent.seconds_since_start() << " s\n";
  }
  AgentRun agent(dir);
  agent.commit(kOthers, "well", kOthers);
  EXPECT_TRUE(eventually([&] { return agent.accepted == kOthers; })) << agent.accepted << " " << agent.view().state;
  std::cout << "the others were delivered " << agent.seconds_since_start() << " s after the restart\n";
  EXPECT_LT(agent.seconds_since_start(), 20 * kPatience);
  EXPECT_EQ(agent.view().waiting, kWaiting);
  EXPECT_EQ(agent.view().missed_wakeups, 0U);
}

}  // namespace
}  // namespace driftd::test
