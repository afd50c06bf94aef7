// SPDX-License-Identifier: Apache-2.0
// One real runner with an outbox in memory, a receiver that answers when the test says, and a clock that the test
// moves. Only a commit, an answer, or its own timer wakes the runner, so a test sees what happens in a quiet agent.
#pragma once

#include <gtest/gtest.h>
#include <random>
#include <set>

#include "fakes.hpp"
#include "support/memory_outbox.hpp"

namespace driftd::delivery::test {

/// An outbox that fails and hangs when the test says.
class FaultyOutbox final : public core::Outbox {
 public:
  driftd::test::MemoryOutbox memory;
  bool broken = false;                         ///< every call fails
  bool save_fails = false;                     ///< settle() fails
  bool slow_saves = false;                     ///< settle() waits for release()
  bool slow_opens = false;                     ///< open_sink() waits for release()
  std::optional<int> exact_fetches_left;       ///< fetch_exact() fails after this many calls; empty: it does not
  std::set<std::int64_t> gone;                 ///< events that retention deleted
  std::function<Task<void>()> while_fetching;  ///< runs after fetch() has read and before it returns; may be empty
  std::vector<core::AgentEvent> told;
  int saves_under_way = 0, most_saves = 0;
  std::size_t most_upserts = 0;  ///< largest number of upserts in one settle()

  Task<Result<core::SinkCursor>> open_sink(std::string sink) override {
    if (slow_opens) co_await wait_for_release();
    if (broken) co_return fail(Code::unavailable, "disk I/O error");
    co_return co_await memory.open_sink(std::move(sink));
  }
  Task<Status> close_sink(std::string sink, bool drop) override {
    co_return co_await memory.close_sink(std::move(sink), drop);
  }
  Task<Result<std::vector<std::string>>> sinks() override { co_return co_await memory.sinks(); }
  Task<Result<std::vector<core::StoredEvent>>> fetch(std::string sink, std::int64_t after, int limit) override {
    if (broken) co_return fail(Code::unavailable, "disk I/O error");
    auto page = co_await memory.fetch(std::move(sink), after, limit);
    if (while_fetching) co_await while_fetching();
    co_return page;
  }
  Task<Result<std::vector<core::StoredEvent>>> fetch_exact(std::string sink, std::vector<std::int64_t> seqs) override {
    const bool spent = exact_fetches_left && (*exact_fetches_left)-- <= 0;
    if (broken || spent) co_return fail(Code::unavailable, "disk I/O error");
    std::erase_if(seqs, [this](std::int64_t seq) { return gone.count(seq) != 0; });
    co_return co_await memory.fetch_exact(std::move(sink), std::move(seqs));
  }
  Task<Status> settle(core::SinkSettlement settlement) override {
    most_saves = std::max(most_saves, ++saves_under_way);
    if (slow_saves) co_await wait_for_release();
    --saves_under_way;
    if (broken || save_fails) co_return fail(Code::unavailable, "database or disk is full");
    most_upserts = std::max(most_upserts, settlement.upsert.size());
    for (const auto& draft : settlement.events) told.push_back(std::get<core::AgentEvent>(draft.event));
    co_return co_await memory.settle(std::move(settlement));
  }
  Task<Result<core::StoredEvent>> append(core::EventDraft draft) override {
    if (broken) co_return fail(Code::unavailable, "disk I/O error");
    told.push_back(std::get<core::AgentEvent>(draft.event));
    co_return core::StoredEvent{};
  }
  Task<Result<bool>> prune(Nanos, Nanos) override { co_return false; }
  Task<Result<Backlog>> backlog() override { co_return Backlog{}; }
  /// Ends the wait of the save under way; the next one waits again.
  void release_one() {
    const bool slow = std::exchange(slow_saves, true);
    release();
    slow_saves = slow;
  }
  void release() {
    slow_saves = slow_opens = false;
    for (const auto& timer : std::exchange(waiting_, {})) timer->cancel();
  }

 private:
  Task<void> wait_for_release() {
    auto timer = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor, Time::max());
    waiting_.push_back(timer);
    boost::system::error_code woken;
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  std::vector<std::shared_ptr<asio::steady_timer>> waiting_;
};

/// What a receiver got and has not answered yet. It must outlive the sink.
struct Receiver {
  struct Open {
    core::StoredEvent event;
    std::shared_ptr<asio::steady_timer> timer;
    std::shared_ptr<Attempt> attempt;
  };
  core::RetryPolicy policy;
  std::vector<Open> open;         ///< sent, not answered
  std::vector<std::int64_t> got;  ///< acknowledged seqs in order, with repetitions
  std::map<std::int64_t, int> sent;
  std::set<std::string> flying;
  bool two_of_a_key = false;
  bool never_stops = false, never_starts = false;
  bool slow_flush = false;                         ///< a flush waits for end_flush()
  std::shared_ptr<asio::steady_timer> flushing{};  ///< of a flush that waits
  std::function<std::optional<Attempt>(const core::StoredEvent&)> at_once = [](const auto&) { return std::nullopt; };

  void answer(std::size_t at, Attempt attempt) {
    Open one = std::move(open.at(at));
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    *one.attempt = std::move(attempt);
    one.timer->cancel();
  }
  void end_flush() {
    slow_flush = false;
    if (flushing) flushing->cancel();
  }
  void answer_all(Attempt attempt = {}) {
    while (!open.empty()) answer(0, attempt);
  }
};

class ReceiverSink final : public core::Sink {
 public:
  ReceiverSink(asio::any_io_executor core, Receiver& receiver) : core_(std::move(core)), receiver_(receiver) {}
  core::RetryPolicy policy() const override { return receiver_.policy; }
  Task<Status> start() override {
    if (receiver_.never_starts) co_await never();
    co_return Status{};
  }
  Task<Attempt> send(core::StoredEvent event) override {
    Receiver& to = receiver_;
    ++to.sent[event.stamp.seq];
    to.two_of_a_key = !to.flying.insert(event.key).second || to.two_of_a_key;
    auto timer = std::make_shared<asio::steady_timer>(core_, Time::max());
    auto attempt = std::make_shared<Attempt>();
    if (auto now = to.at_once(event)) {
      *attempt = std::move(*now);
      timer->expires_at(Time::min());
    } else {
      to.open.push_back({event, timer, attempt});
    }
    boost::system::error_code woken;
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, woken));
    to.flying.erase(event.key);
    if (attempt->outcome == Outcome::delivered && !event.replay) to.got.push_back(event.stamp.seq);
    co_return *attempt;
  }
  Task<Status> flush() override {
    if (!receiver_.slow_flush) co_return Status{};
    const auto timer = std::make_shared<asio::steady_timer>(core_, Time::max());
    receiver_.flushing = timer;
    boost::system::error_code ignored;
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    co_return Status{};
  }
  Task<void> stop() override {
    if (receiver_.never_stops) co_await never();
  }
  std::string describe() const override { return "connected"; }

 private:
  Task<void> never() {
    asio::steady_timer timer(core_, Time::max());
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  asio::any_io_executor core_;
  Receiver& receiver_;
};

class LaneWorld {
 public:
  explicit LaneWorld(core::RetryPolicy policy = {}) { to.policy = std::move(policy); }
  ~LaneWorld() { kill(); }

  void start() {
    settings.agent = "a";
    settings.seed = 7;
    settings.routes = [](const core::AgentEvent&) { return std::vector<std::string>{"other"}; };
    relay = std::make_unique<Relay>(io_->get_executor(), outbox, clock, settings);
    relay->add_sink("s", "fake", std::make_unique<ReceiverSink>(io_->get_executor(), to));
    asio::co_spawn(*io_, relay->start(), [](std::exception_ptr, const Status&) {});
    settle();
  }
  /// Kills the agent: nothing is drained or saved, and events in flight are forgotten.
  void kill() {
    relay.reset();
    to.open.clear();
    to.flying.clear();
    outbox.release();
    io_ = std::make_unique<asio::io_context>();
  }
  void commit(int count, int keys, const std::string& prefix = "k") {
    ring(count, keys, prefix);
    settle();
  }
  /// Commits an event without running the runner.
  void ring(int count, int keys, const std::string& prefix = "k") {
    for (int i = 0; i < count; ++i) {
      core::StoredEvent event;
      event.stamp.id = "id-" + std::to_string(outbox.memory.events.size() + 1);
      event.payload = std::string(payload, 'p');
      event.key = prefix + std::to_string(static_cast<int>(outbox.memory.events.size()) % keys);
      outbox.memory.add(std::move(event));
    }
    if (relay) relay->wake();
  }
  void settle() {
    io_->restart();
    while (io_->poll() != 0) io_->restart();
  }
  /// Lets time pass; only a runner that waits for this time wakes.
  void pass(std::chrono::nanoseconds by) {
    clock.advance(by);
    relay->watch();
    settle();
  }
  core::SinkView view() const { return relay->views().at(0); }
  std::int64_t low_water() { return outbox.memory.cursors["s"].low_water; }
  std::int64_t committed() const { return static_cast<std::int64_t>(outbox.memory.events.size()); }
  /// Checks that every committed event is delivered or a dead letter, and that this is stored.
  bool over() {
    const auto& cursor = outbox.memory.cursors["s"];
    return cursor.low_water == committed() && std::all_of(cursor.exceptions.begin(), cursor.exceptions.end(),
                                                          [](const auto& state) { return state.dead; });
  }
  std::unique_ptr<core::Sink> new_sink() { return std::make_unique<ReceiverSink>(io_->get_executor(), to); }
  template <class T>
  std::shared_ptr<std::optional<T>> spawn(Task<T> task) {
    auto out = std::make_shared<std::optional<T>>();
    asio::co_spawn(*io_, std::move(task), [out](std::exception_ptr, T value) { *out = std::move(value); });
    settle();
    return out;
  }
  template <class T>
  std::optional<T> ask(Task<T> task) {
    return *spawn(std::move(task));
  }

  void spawn(Task<void> task, bool& done) {
    asio::co_spawn(*io_, std::move(task), [&done](std::exception_ptr) { done = true; });
    settle();
  }
  /// Waits in real time, for code with a timer of its own.
  void run_for(std::chrono::milliseconds time) {
    io_->restart();
    io_->run_for(time);
  }

  std::size_t payload = 0;  ///< bytes of each event that is committed from now on
  RelaySettings settings;   ///< settings of the next start()
  FakeClock clock;
  FaultyOutbox outbox;
  Receiver to;

 private:
  std::unique_ptr<asio::io_context> io_ = std::make_unique<asio::io_context>();

 public:
  std::unique_ptr<Relay> relay;
};

}  // namespace driftd::delivery::test
