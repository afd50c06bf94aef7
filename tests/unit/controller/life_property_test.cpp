// SPDX-License-Identifier: Apache-2.0
// Random lives of resources under a watcher, a controller and its resync, with simulated time and workers. The
// reconciler copies what it reads into a small world; that world must be what the resources say, whatever happened in
// between. A failing seed prints itself; DRIFTD_CONTROLLER_SEED=<n> runs that one alone.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <stdexcept>

#include "controller/scheduler.hpp"
#include "controller/watcher.hpp"
#include "world.hpp"

namespace driftd::controller {
namespace {

/// Some events are lost on the way; nobody may depend on them.
class FaultyPublisher final : public EventPublisher {
 public:
  explicit FaultyPublisher(std::mt19937_64& random) : random_(random) {}
  Status publish(const ChangeEvent&) override {
    if (random_() % 10 == 0) throw std::runtime_error("broken");
    if (random_() % 10 == 0) return tl::unexpected(std::string("no server"));
    return {};
  }

 private:
  std::mt19937_64& random_;
};

/// A resource as the server has it.
struct Resource {
  ResourceMeta meta;
  bool is_finalized = false;  ///< finalize() of this uid succeeded
};

/// A call that has not returned, and what it read when it began.
struct Running {
  Attempt attempt;
  std::optional<ResourceMeta> read;
};

class Life {
 public:
  explicit Life(std::uint64_t seed)
      : random_(seed),
        publisher_(random_),
        watcher_({"PrismBackend", "op", true}, settings_, clock_, &publisher_, quiet()),
        controller_("backends", settings_, clock_, reconciler_, quiet(), seed),
        scheduler_(settings_, clock_, jobs(), quiet()) {
    keys_ = draw(1, 6);
    workers_ = static_cast<std::size_t>(draw(1, 4));
    watcher_.add_handler([this](const Change&) {
      if (random_() % 20 == 0) throw std::runtime_error("a handler of somebody else");
    });
    watcher_.add_handler([this](const Change& change) { controller_.handle(change); });
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) step();
    converge();
  }
  const std::map<std::string, std::uint64_t>& reached() const { return reached_; }

 private:
  static Log quiet() {
    return [](LogLevel, const std::string&) {};
  }
  Jobs jobs() {
    Jobs out;
    out.resync = [this] {
      if (!is_well_) attempts_.clear();  // a resync allows one more attempt of what is Failed, and five of the others
      return controller_.resync(watcher_.keys());
    };
    return out;
  }
  int draw(int min, int max) { return std::uniform_int_distribution<int>(min, max)(random_); }

  void step() {
    const int what = draw(0, 99);
    if (what < 30) return change(key_of(std::string(1, static_cast<char>('a' + draw(0, keys_ - 1)))));
    if (what < 35) return list_again();
    if (what < 60) return begin();
    if (what < 85) return end();
    if (what < 95) return pass(1ms * draw(0, 2'000));
    pass(10s * draw(0, 70));  // also past a deadline
  }

  void pass(Duration time) {
    clock_.pass(time);
    controller_.expire();
    scheduler_.run_due();
    EXPECT_GT(scheduler_.next_due(), clock_.now());
    EXPECT_GT(controller_.next_deadline(), clock_.now());
  }

  // What happens to resources.

  void change(const Key& key) {
    const auto at = server_.find(key);
    if (at == server_.end()) return create(key);
    ResourceMeta& meta = at->second.meta;
    const int what = draw(0, 9);
    if (what < 5) {
      ++meta.generation;
      return observe(at->second);
    }
    if (what < 6) {
      ++meta.rest_digest;
      return observe(at->second);
    }
    if (what < 7) {
      ++meta.status_digest;  // nobody is called for it
      return watcher_.observe(meta);
    }
    if (what < 8 && !meta.deleting) {
      meta.deleting = true;
      ++meta.generation;
      return observe(at->second);
    }
    remove(key);
  }

  void create(const Key& key) {
    Resource made;
    made.meta = resource(key.name);
    made.meta.uid = std::to_string(++uids_);
    server_[key] = made;
    observe(made);
  }

  void observe(const Resource& changed) {
    if (!changed.is_finalized) owe(changed.meta.key, changed.meta.deleting);
    watcher_.observe(changed.meta);
  }

  void remove(const Key& key) {
    const Resource gone = server_.at(key);
    server_.erase(key);
    gone_[key] = gone.meta.uid;
    if (!gone.is_finalized) owe(key, true);
    if (draw(0, 2) > 0) return watcher_.observe_deleted(key, gone.meta.uid);
    if (draw(0, 1) > 0) create(key);  // a list sees another uid only
    list_again();
  }

  void list_again() {
    std::vector<ResourceMeta> all;
    for (const auto& [key, known] : server_) all.push_back(known.meta);
    watcher_.observe_all(all);
  }

  void owe(const Key& key, bool finalize) {
    if (finalize) owed_.erase({key, false});
    owed_.insert({key, finalize});
    forget_attempts(key);
    ++reached_["changes"];
    for (const Running& call : running_) reached_["changes during a call"] += call.attempt.key == key ? 1 : 0;
  }

  void forget_attempts(const Key& key) {
    attempts_.erase({key, false});
    attempts_.erase({key, true});
  }

  // What the workers do.

  void begin() {
    if (running_.size() >= workers_) return;
    auto attempt = controller_.take();
    if (!attempt) {
      EXPECT_GT(controller_.next_due(), clock_.now()) << "a worker would wake for nothing";
      return;
    }
    const Key key = attempt->key;
    for (const Running& call : running_) EXPECT_NE(call.attempt.key, key) << "one key in two calls";
    EXPECT_LE(attempt->context.attempt, settings_.max_retry_attempts);
    int& attempts = attempts_[{key, attempt->finalizes}];
    EXPECT_LE(++attempts, settings_.max_retry_attempts) << render(key) << ": too many attempts without a change";
    owed_.erase({key, attempt->finalizes});
    const auto at = server_.find(key);
    Running call{*attempt, at == server_.end() ? std::nullopt : std::optional(at->second.meta)};
    if (attempt->finalizes) {
      EXPECT_FALSE(call.read && !call.read->deleting && call.read->uid == attempt->context.last_seen->uid)
          << render(key) << " is finalized, and nobody deleted it";
      ++reached_["finalizations"];
    }
    running_.push_back(std::move(call));
  }

  Outcome draw_outcome() {
    const int what = is_well_ ? 0 : draw(0, 9);
    if (what < 4) return Success{};
    if (what < 7) return Requeue{"try again"};
    if (what < 8) return Failed{"look at it"};
    return RequeueAfter{1s * draw(0, 100)};
  }

  void end() {
    if (running_.empty()) return;
    const auto at = running_.begin() + draw(0, static_cast<int>(running_.size()) - 1);
    const Running call = *at;
    const bool is_overdue = call.attempt.context.deadline <= clock_.now();
    EXPECT_EQ(call.attempt.context.stop.stop_requested(), is_overdue);
    const Outcome outcome = draw_outcome();
    const bool succeeded = std::holds_alternative<Success>(outcome);
    // A call that did not succeed may have done its work or not. One that ran out of time and did it has not succeeded.
    if (succeeded || draw(0, 1) == 0) apply(call);
    if (succeeded && !is_overdue) {
      forget_attempts(call.attempt.key);
      if (call.attempt.finalizes) note_finalized(call);
    }
    if (std::holds_alternative<RequeueAfter>(outcome) && !is_overdue) forget_attempts(call.attempt.key);
    if (is_overdue) ++reached_["time-outs"];
    running_.erase(at);
    controller_.finish(call.attempt, {outcome});
  }

  void apply(const Running& call) {
    const Key& key = call.attempt.key;
    if (call.attempt.finalizes || !call.read) {
      world_.erase(key);
    } else {
      world_[key] = *call.read;
    }
  }

  void note_finalized(const Running& call) {
    const Key& key = call.attempt.key;
    const std::string& uid = call.attempt.context.last_seen->uid;
    // It went while it was finalized: no other call is needed. If another of its name came and went, one is.
    if (call.read && call.read->uid == uid && gone_[key] == uid) owed_.erase({key, true});
    const auto at = server_.find(key);
    if (at == server_.end()) return;
    if (at->second.meta.uid != uid || owed_.count({key, true}) != 0) return;
    at->second.is_finalized = true;
    if (draw(0, 1) == 0) remove(key);  // ours was the last finalizer
  }

  // The end.

  void drain() {
    for (int i = 0; i < 2'000 && !testing::Test::HasFailure(); ++i) {
      if (running_.empty() && controller_.next_due() == Time::max()) return;
      if (controller_.next_due() != Time::max()) clock_.pass_until(controller_.next_due());
      controller_.expire();
      begin();
      end();
    }
    if (!testing::Test::HasFailure()) ADD_FAILURE() << "the controller does not come to rest";
  }

  /// From now on every call succeeds. Without a resync, each change leads to a call; with one, all is as it should be.
  void converge() {
    is_well_ = true;
    drain();
    for (const auto& [key, finalize] : owed_) {
      ADD_FAILURE() << render(key) << (finalize ? " was deleted" : " changed") << " and no call came";
    }
    controller_.resync(watcher_.keys());
    drain();
    EXPECT_TRUE(controller_.failed().empty());
    std::size_t exist = 0, deleting = 0;
    for (const auto& [key, known] : server_) {
      if (known.meta.deleting) {
        ++deleting;
        EXPECT_EQ(world_.count(key), 0U) << render(key) << " is not finalized";
        continue;
      }
      ++exist;
      ASSERT_EQ(world_.count(key), 1U) << render(key) << " is missing";
      EXPECT_EQ(world_[key].uid, known.meta.uid);
      EXPECT_EQ(world_[key].generation, known.meta.generation) << render(key) << " was not followed";
    }
    EXPECT_EQ(world_.size(), exist) << "something is left of resources that are gone";
    EXPECT_EQ(controller_.known(), deleting) << "something is remembered of what is done";
    for (auto at = server_.begin(); at != server_.end(); at = server_.erase(at)) {
      if (at->second.meta.deleting) watcher_.observe_deleted(at->first, at->second.meta.uid);
    }
    EXPECT_EQ(controller_.known(), 0U);
  }

  std::mt19937_64 random_;
  Settings settings_;
  StandingClock clock_;
  ScriptedReconciler reconciler_;
  FaultyPublisher publisher_;
  Watcher watcher_;
  Controller controller_;
  Scheduler scheduler_;
  int keys_ = 1, uids_ = 0;
  std::size_t workers_ = 1;
  bool is_well_ = false;
  std::map<Key, Resource> server_;
  std::map<Key, std::string> gone_;               ///< uid of the last one of that name
  std::map<Key, ResourceMeta> world_;             ///< what the reconciler made
  std::set<std::pair<Key, bool>> owed_;           ///< a reconcile or a finalize since the last change
  std::map<std::pair<Key, bool>, int> attempts_;  ///< since the last change, success or resync
  std::vector<Running> running_;
  std::map<std::string, std::uint64_t> reached_;
};

TEST(ControllerProperties, HoldInThousandsOfRandomLives) {
  const Seeds seeds;
  std::map<std::string, std::uint64_t> reached;
  for (std::uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    Life life(seed);
    life.run(300);
    for (const auto& [what, times] : life.reached()) reached[what] += times;
    ASSERT_FALSE(HasFailure()) << "DRIFTD_CONTROLLER_SEED=" << seed;
  }
  if (seeds.is_one) return;
  for (const auto* what : {"changes", "changes during a call", "finalizations", "time-outs"}) {
    EXPECT_GT(reached[what], 1'000U) << what;
  }
}

}  // namespace
}  // namespace driftd::controller
