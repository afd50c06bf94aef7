// SPDX-License-Identifier: Apache-2.0
// Random lives of a WorkQueue beside an account of its own of what each key is owed. A failing seed prints itself;
// DRIFTD_CONTROLLER_SEED=<n> runs that one alone.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "controller/work_queue.hpp"
#include "world.hpp"

namespace driftd::controller {
namespace {

/// What one key is owed, by the rules of docs/controller.md.
struct Owed {
  std::optional<Time> fresh;                 ///< a call with attempt 1, from then on
  std::optional<Time> retry_min, retry_max;  ///< one more attempt, between these two
  int row = 0;                               ///< attempts since it began from one
  bool in_hand = false, is_forgotten = false, is_failed = false;
  std::map<Key, int> passed_by;  ///< how often each other key was called while this one was due
};

class QueueLife {
 public:
  explicit QueueLife(std::uint64_t seed)
      : random_(seed),
        settings_(draw_settings()),
        queue_(settings_, [this] { return random_(); }) {
    keys_ = std::uniform_int_distribution<int>(1, 7)(random_);
    workers_ = std::uniform_int_distribution<std::size_t>(1, 4)(random_);
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) step();
    drain();
  }
  std::uint64_t takes() const { return takes_; }
  const std::map<std::string, std::uint64_t>& reached() const { return reached_; }

 private:
  Settings draw_settings() {
    Settings out;
    out.max_retry_attempts = draw(1, 6);
    out.retry_first = 100ms * draw(1, 10);
    out.retry_max = out.retry_first * draw(1, 20);
    out.retry_rate = draw(1, 20);
    out.retry_burst = draw(1, 10);
    return out;
  }
  int draw(int min, int max) { return std::uniform_int_distribution<int>(min, max)(random_); }
  Key any_key() { return key_of(std::string(1, static_cast<char>('a' + draw(0, keys_ - 1)))); }

  void step() {
    const int what = draw(0, 99);
    if (what < 25) return add(any_key(), now_, Cause::change);
    if (what < 30) return add(any_key(), now_ + 10ms * draw(0, 500), Cause::change);
    if (what < 33) return add(any_key(), now_, Cause::resync);
    if (what < 36) return storm();
    if (what < 38) return forget(any_key());
    if (what < 62) return take();
    if (what < 84) return finish(draw_outcome());
    if (what < 92) return pass(1ms * draw(0, 400));
    pass_until_due();
  }

  void pass(Duration time) {
    now_ += time;
    reached_["time"] += 1;
  }
  void pass_until_due() {
    const Time due = queue_.next_due();
    if (due != Time::max() && due > now_) now_ = due;
  }

  Outcome draw_outcome() {
    const int what = draw(0, 9);
    if (what < 3) return Success{};
    if (what < 7) return Requeue{"try again"};
    if (what < 8) return Failed{"look at it"};
    return RequeueAfter{1ms * draw(-100, 3'000)};
  }

  void add(const Key& key, Time due, Cause cause) {
    queue_.add_at(key, due, cause);
    Owed& owed = owed_[key];
    if (cause == Cause::resync && (owed.in_hand || owed.retry_min)) return;
    if (cause == Cause::resync && owed.is_failed) {
      owed.retry_min = owed.retry_max = due;
      owed.row = settings_.max_retry_attempts - 1;
      ++reached_["resync of a failed key"];
      return;
    }
    if (owed.in_hand) ++reached_["change in hand"];
    owed.fresh = owed.fresh ? std::min(*owed.fresh, due) : due;
  }

  /// One key changes all the time.
  void storm() {
    const Key key = any_key();
    for (int i = 0; i < 20; ++i) {
      add(key, now_, Cause::change);
      take();
      finish(Success{});
    }
  }

  void forget(const Key& key) {
    queue_.forget(key);
    Owed& owed = owed_[key];
    owed.fresh.reset();
    owed.retry_min.reset();
    owed.retry_max.reset();
    owed.is_failed = false;
    owed.is_forgotten = owed.in_hand;
    owed.passed_by.clear();
  }

  void take() {
    if (in_hand_.size() >= workers_) return;
    const auto taken = queue_.take(now_);
    if (!taken) return check_that_nothing_is_due();
    ++takes_;
    Owed& owed = owed_[taken->key];
    EXPECT_FALSE(owed.in_hand) << "one key in two hands";
    if (owed.fresh && *owed.fresh <= now_) {
      EXPECT_EQ(taken->attempt, 1);
      owed.fresh.reset();
      owed.row = 0;
    } else {
      ASSERT_TRUE(owed.retry_min) << render(taken->key) << " was taken, and nothing asked for it";
      EXPECT_GE(now_, *owed.retry_min) << "a retry came early";
      record_retry();
    }
    owed.retry_min.reset();
    owed.retry_max.reset();
    EXPECT_EQ(taken->attempt, ++owed.row);
    EXPECT_LE(owed.row, settings_.max_retry_attempts) << "too many attempts in a row";
    owed.in_hand = true;
    owed.passed_by.clear();
    in_hand_.push_back(taken->key);
    for (auto& [other, waits] : owed_) {
      if (waits.in_hand || !waits.fresh || *waits.fresh > now_) continue;
      EXPECT_LE(++waits.passed_by[taken->key], 1) << render(other) << " is held up by " << render(taken->key);
    }
  }

  void check_that_nothing_is_due() {
    for (const auto& [key, owed] : owed_) {
      EXPECT_FALSE(!owed.in_hand && owed.fresh && *owed.fresh <= now_) << render(key) << " is due and is not given";
      EXPECT_FALSE(owed.retry_max && *owed.retry_max <= now_ && may_retry()) << render(key) << " waits for no reason";
    }
    EXPECT_GT(queue_.next_due(), now_) << "a worker would wake for nothing";
  }

  /// True if one more retry is within the rate, and was so a millisecond ago.
  bool may_retry() const {
    for (std::size_t i = 0; i < retries_.size(); ++i) {
      const auto allowed = settings_.retry_burst + (now_ - 1ms - retries_[i]) * settings_.retry_rate / 1s;
      if (static_cast<Duration::rep>(retries_.size() + 1 - i) > allowed) return false;
    }
    return true;
  }

  /// At most `retry_burst` retries, and `retry_rate` more in each second, in whatever time one looks at.
  void record_retry() {
    retries_.push_back(now_);
    for (std::size_t i = 0; i < retries_.size(); ++i) {
      const auto allowed = settings_.retry_burst + (now_ - retries_[i]) * settings_.retry_rate / 1s;
      EXPECT_LE(static_cast<Duration::rep>(retries_.size() - i), allowed) << "the rate of retries is not kept";
    }
    ++reached_["retry"];
  }

  void finish(const Outcome& outcome) {
    if (in_hand_.empty()) return;
    const std::size_t which = static_cast<std::size_t>(draw(0, static_cast<int>(in_hand_.size()) - 1));
    const Key key = in_hand_[which];
    in_hand_.erase(in_hand_.begin() + static_cast<std::ptrdiff_t>(which));
    queue_.finish(key, outcome, now_);
    Owed& owed = owed_[key];
    owed.in_hand = false;
    const bool again = owed.fresh && *owed.fresh <= now_;
    if (!std::exchange(owed.is_forgotten, false)) settle(owed, outcome, again);
    if (again) owed.fresh = now_;
  }

  void settle(Owed& owed, const Outcome& outcome, bool again) {
    if (std::holds_alternative<Failed>(outcome)) {
      owed.is_failed = true;
    } else if (std::holds_alternative<Requeue>(outcome) && !again) {
      if (owed.row == settings_.max_retry_attempts) {
        owed.is_failed = true;
        ++reached_["failed after the last attempt"];
        return;
      }
      const Duration bound = std::min(settings_.retry_first * (1 << (owed.row - 1)), settings_.retry_max);
      owed.retry_min = now_ + bound / 2;
      owed.retry_max = now_ + bound;
    } else if (const auto* later = std::get_if<RequeueAfter>(&outcome)) {
      const Time due = now_ + std::max(later->delay, settings_.retry_first);
      owed.fresh = owed.fresh ? std::min(*owed.fresh, due) : due;
    }
    if (has_succeeded(outcome)) owed.is_failed = false;
  }
  static bool has_succeeded(const Outcome& outcome) {
    return std::holds_alternative<Success>(outcome) || std::holds_alternative<RequeueAfter>(outcome);
  }

  /// All is well from now on: everything that is owed comes, and then there is nothing but what is Failed.
  void drain() {
    for (int i = 0; i < 1'000 && !testing::Test::HasFailure(); ++i) {
      if (in_hand_.empty() && queue_.next_due() == Time::max()) break;
      pass_until_due();
      take();
      finish(Success{});
    }
    std::size_t failed = 0;
    for (const auto& [key, owed] : owed_) {
      EXPECT_FALSE(owed.fresh) << render(key) << " changed and was not called";
      EXPECT_FALSE(owed.retry_min) << render(key) << " waits for a retry that does not come";
      failed += owed.is_failed ? 1 : 0;
    }
    EXPECT_EQ(queue_.size(), 0U);
    EXPECT_EQ(queue_.in_hand(), 0U);
    EXPECT_EQ(queue_.failed_count(), failed);
    EXPECT_EQ(queue_.failed().size(), failed);
    EXPECT_EQ(queue_.known(), failed) << "something is left of keys that are done";
  }

  std::mt19937_64 random_;
  const Settings settings_;
  WorkQueue queue_;
  int keys_ = 1;
  std::size_t workers_ = 1;
  Time now_ = Time{} + std::chrono::hours(1);
  std::map<Key, Owed> owed_;
  std::vector<Key> in_hand_;
  std::vector<Time> retries_;
  std::uint64_t takes_ = 0;
  std::map<std::string, std::uint64_t> reached_;
};

TEST(QueueProperties, HoldInThousandsOfRandomLives) {
  const Seeds seeds;
  std::uint64_t takes = 0;
  std::map<std::string, std::uint64_t> reached;
  for (std::uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    QueueLife life(seed);
    life.run(400);
    takes += life.takes();
    for (const auto& [what, times] : life.reached()) reached[what] += times;
    ASSERT_FALSE(HasFailure()) << "DRIFTD_CONTROLLER_SEED=" << seed;
  }
  if (seeds.is_one) return;
  EXPECT_GT(takes, 200'000U);
  for (const auto* what : {"retry", "change in hand", "resync of a failed key", "failed after the last attempt"}) {
    EXPECT_GT(reached[what], 1'000U) << what;
  }
}

}  // namespace
}  // namespace driftd::controller
