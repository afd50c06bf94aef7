// SPDX-License-Identifier: Apache-2.0
// The threads of the runtime, with the real clock. What they do is tested with a clock that stands still; here is what
// only threads can get wrong. Under ThreadSanitizer, too.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <random>
#include <set>
#include <stdexcept>

#include "controller/scheduler.hpp"
#include "controller/watcher.hpp"
#include "support/patience.hpp"
#include "world.hpp"

namespace driftd::controller {
namespace {

constexpr auto kMaxWait = 20s * test::kPatience;

Log silent() {
  return [](LogLevel, const std::string&) {};
}

/// A number that one thread waits for.
class Counter {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++value_;
    changed_.notify_all();
  }
  bool reaches(int value) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kMaxWait, [&] { return value_ >= value; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int value_ = 0;
};

bool comes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kMaxWait;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Notes which version of each key it saw, and whether two calls for one key met.
class VersionReader final : public Reconciler {
 public:
  explicit VersionReader(std::vector<std::atomic<int>>& versions) : versions_(versions), seen_(versions.size()) {}
  Outcome reconcile(const Key& key, Context&) override { return look(key); }
  Outcome finalize(const Key& key, Context&) override { return look(key); }
  bool has_seen_all() {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i] != versions_[i].load()) return false;
    }
    return true;
  }
  std::atomic<int> met = 0;

 private:
  Outcome look(const Key& key) {
    const auto which = static_cast<std::size_t>(std::stoi(key.name));
    {
      const std::lock_guard lock(mutex_);
      if (!inside_.insert(key).second) ++met;
    }
    const int version = versions_[which].load();
    std::this_thread::yield();
    const std::lock_guard lock(mutex_);
    inside_.erase(key);
    seen_[which] = version;
    ++ends_;
    if (ends_ % 7 == 0) return Requeue{"try again"};
    if (ends_ % 11 == 0) throw std::runtime_error("broken");
    return Success{};
  }

  std::vector<std::atomic<int>>& versions_;
  std::mutex mutex_;
  std::set<Key> inside_;
  std::vector<int> seen_;
  int ends_ = 0;
};

TEST(Threads, SeeTheLastVersionOfEachKeyAndNeverMeetAtOne) {
  std::vector<std::atomic<int>> versions(20);
  VersionReader reader(versions);
  Settings settings;
  settings.workers = 4;
  settings.retry_first = 1ms;
  settings.retry_rate = 10'000;
  settings.max_retry_attempts = 1'000;
  const SystemClock clock;
  Controller controller("numbers", settings, clock, reader, silent(), 1);
  controller.start();
  std::vector<std::thread> writers;
  for (unsigned seed = 0; seed < 4; ++seed) {
    writers.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 2'000; ++i) {
        const std::size_t which = random() % versions.size();
        ++versions[which];
        controller.handle({ChangeType::updated, resource(std::to_string(which)), {}, false});
        if (random() % 50 == 0) controller.resync({key_of("0"), key_of("1")});
        if (random() % 50 == 0) (void)controller.metrics();
      }
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_TRUE(comes_true([&] { return controller.known() == 0; }));
  controller.stop();
  EXPECT_TRUE(reader.has_seen_all());
  EXPECT_EQ(reader.met, 0);
  EXPECT_EQ(controller.known(), 0U);
}

TEST(Threads, WakeForWhatIsAddedWhileTheyWait) {
  ScriptedReconciler reconciler;
  Counter done;
  reconciler.on_reconcile = [&](const Key&, Context&) -> Outcome {
    done.add();
    return Success{};
  };
  const SystemClock clock;
  Controller controller("one", {}, clock, reconciler, silent(), 1);
  controller.start();
  for (int i = 1; i <= 200; ++i) {
    if (i % 2 == 0) controller.add_at(key_of("far"), clock.now() + 1h);
    controller.add(key_of("a"));
    ASSERT_TRUE(done.reaches(i));
  }
  controller.forget(key_of("far"));
  controller.stop();
}

TEST(Threads, ACallThatOverrunsIsAskedToStopAndHoldsUpNoOtherKey) {
  Settings settings;
  settings.workers = 2;
  settings.reconciliation_timeout = 20ms;
  settings.max_retry_attempts = 1;
  ScriptedReconciler reconciler;
  Counter others;
  reconciler.on_reconcile = [&](const Key& key, Context& context) -> Outcome {
    if (key.name == "other") {
      others.add();
      return Success{};
    }
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    stopped.wait(lock, context.stop, [] { return false; });
    return Success{};
  };
  const SystemClock clock;
  Controller controller("slow", settings, clock, reconciler, silent(), 1);
  controller.start();
  controller.add(key_of("slow"));
  controller.add(key_of("other"));
  EXPECT_TRUE(others.reaches(1));
  const auto reason_of_slow = [&] {  // on a machine that is busy, the other one may have failed as well
    for (const FailedKey& failed : controller.failed()) {
      if (failed.key.name == "slow") return failed.reason;
    }
    return std::string();
  };
  ASSERT_TRUE(comes_true([&] { return !reason_of_slow().empty(); }));
  EXPECT_EQ(reason_of_slow(), "the only attempt did not succeed: timed out after 20 ms");
  EXPECT_GE(controller.metrics().timeouts, 1U);
}

TEST(Threads, ACallThatDoesNotListenHoldsUpNoOtherKeyAlsoWithOneWorker) {
  Settings settings;
  settings.reconciliation_timeout = 50ms;
  std::mutex mutex;
  std::condition_variable changed;
  bool released = false;
  int inside = 0, max_inside = 0, overdue = 0;
  Counter others;
  ScriptedReconciler reconciler;
  reconciler.on_reconcile = [&](const Key& key, Context& context) -> Outcome {
    std::unique_lock lock(mutex);
    if (key.name == "deaf") {
      changed.wait(lock, [&] { return released; });
      return Success{};
    }
    max_inside = std::max(max_inside, ++inside);
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    --inside;
    overdue += context.stop.stop_requested() ? 1 : 0;  // on a machine that is busy; it is replaced as well
    others.add();
    return Success{};
  };
  const SystemClock clock;
  Controller controller("slow", settings, clock, reconciler, silent(), 1);
  controller.start();
  int handled = 0;
  for (int round = 0; round < 3; ++round) {
    {
      const std::lock_guard lock(mutex);
      released = false;
    }
    controller.add(key_of("deaf"));
    controller.add(key_of("other"));
    ASSERT_TRUE(others.reaches(++handled));
    EXPECT_TRUE(controller.running().at(0).overdue);
    const std::lock_guard lock(mutex);
    released = true;
    changed.notify_all();
  }
  EXPECT_TRUE(comes_true([&] { return controller.known() == 0; }));
  for (int i = 0; i < 100; ++i) controller.add(key_of(std::to_string(i)));
  ASSERT_TRUE(others.reaches(handled + 100));
  EXPECT_LE(max_inside, 1 + overdue) << "a thread that was replaced went on";
}

TEST(Threads, StopEndsCallsThatListen) {
  ScriptedReconciler reconciler;
  Counter inside;
  reconciler.on_reconcile = [&](const Key&, Context& context) -> Outcome {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    inside.add();
    stopped.wait(lock, context.stop, [] { return false; });
    return Requeue{"stopped"};
  };
  const SystemClock clock;
  Controller controller("slow", {}, clock, reconciler, silent(), 1);
  controller.start();
  controller.add(key_of("a"));
  controller.add(key_of("b"));
  ASSERT_TRUE(inside.reaches(1));
  controller.stop();
  controller.stop();
  EXPECT_EQ(reconciler.calls, std::vector<std::string>{"reconcile a"});
  EXPECT_EQ(controller.metrics().reconciliations_interrupted, 1U);
}

TEST(Threads, MayStartAgainAfterStop) {
  ScriptedReconciler reconciler;
  Counter done;
  reconciler.on_reconcile = [&](const Key&, Context&) -> Outcome {
    done.add();
    return Success{};
  };
  const SystemClock clock;
  Controller controller("one", {}, clock, reconciler, silent(), 1);
  for (int i = 1; i <= 20; ++i) {
    controller.add(key_of("a"));
    controller.start();
    EXPECT_TRUE(done.reaches(i)) << "what was added while it was stopped is not lost";
    controller.stop();
  }
}

TEST(Threads, AJobThatHangsHoldsUpNoOtherJob) {
  Settings settings;
  settings.scheduler_interval = settings.cleanup_interval = 10ms;
  Counter resyncs, hangs;
  Jobs jobs;
  jobs.resync = [&] {
    resyncs.add();
    return std::size_t{0};
  };
  jobs.cleanup = [&](const std::stop_token& stop) -> Status {
    hangs.add();
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    stopped.wait(lock, stop, [] { return false; });
    return {};
  };
  const SystemClock clock;
  Scheduler scheduler(settings, clock, jobs, silent());
  scheduler.start();
  EXPECT_TRUE(scheduler.metrics().running);
  EXPECT_TRUE(hangs.reaches(1));
  EXPECT_TRUE(resyncs.reaches(5));
  EXPECT_GT(scheduler.metrics().longest_running, Duration::zero());
  scheduler.stop();
  EXPECT_FALSE(scheduler.metrics().running);
  EXPECT_EQ(scheduler.metrics().cleanups, 1U);
}

TEST(Threads, MayObserveAtTheSameTime) {
  const SystemClock clock;
  Watcher watcher({"PrismBackend", "op", true}, {}, clock, nullptr, silent());
  std::map<Key, std::int64_t> last;  // handlers are called one after the other
  int wrong = 0;
  watcher.add_handler([&](const Change& change) {
    std::int64_t& known = last[change.resource.key];
    if (change.before && change.before->generation != known) ++wrong;
    known = change.resource.generation;
  });
  std::vector<std::thread> sources;
  for (int i = 0; i < 4; ++i) {
    sources.emplace_back([&, i] {
      for (int generation = 1; generation <= 500; ++generation) {
        watcher.observe(resource("shared", generation));
        watcher.observe(resource(std::to_string(i), generation));
        if (generation % 50 == 0) (void)watcher.metrics();
      }
    });
  }
  for (auto& source : sources) source.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(watcher.keys().size(), 5U);
  EXPECT_EQ(last[key_of("3")], 500);
}

}  // namespace
}  // namespace driftd::controller
