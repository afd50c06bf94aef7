// SPDX-License-Identifier: Apache-2.0
// An outbox in memory, a sink that answers by script, and a clock that the test moves, so that schedules of days take
// no time.
#pragma once

#include <algorithm>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <functional>

#include "delivery/relay.hpp"

namespace driftd::delivery::test {

using core::Attempt;
using Outcome = Attempt::Outcome;

/// A clock far ahead of the real one: a timer set by it never fires. The test moves the clock and wakes the relay.
class FakeClock final : public Clock {
 public:
  Nanos wall() const override { return wall_; }
  Time mono() const override { return mono_; }
  void advance(std::chrono::nanoseconds by) {
    wall_ += by.count();
    mono_ += std::chrono::duration_cast<Time::duration>(by);
  }
  /// Sets the wall clock, as an operator does or as after a machine was off.
  void set_wall(std::chrono::nanoseconds by) { wall_ += by.count(); }

 private:
  Nanos wall_ = 1'700'000'000'000'000'000;
  Time mono_ = std::chrono::steady_clock::now() + std::chrono::hours(24 * 365);
};

class FakeOutbox final : public core::Outbox {
 public:
  struct Row {
    core::StoredEvent event;
    std::vector<std::string> sinks;
  };
  std::vector<Row> rows;
  std::map<std::string, core::SinkCursor> cursors;
  std::vector<core::AgentEvent> appended;
  int saves = 0;

  std::int64_t add(const std::string& key, std::vector<std::string> sinks) {
    core::StoredEvent event;
    event.stamp.seq = static_cast<std::int64_t>(rows.size()) + 1;
    event.stamp.id = "id-" + std::to_string(event.stamp.seq);
    event.key = key;
    event.payload = "payload of " + event.stamp.id;
    rows.push_back({std::move(event), std::move(sinks)});
    return static_cast<std::int64_t>(rows.size());
  }
  bool slow = false;  ///< fetch() lets other coroutines run first
  int opens = 0;      ///< calls of open_sink()
  Task<Result<core::SinkCursor>> open_sink(std::string sink) override {
    ++opens;
    cursors[sink].sink = sink;
    co_return cursors[sink];
  }
  Task<Status> close_sink(std::string sink, bool drop_pending) override {
    if (!drop_pending) co_return fail(Code::conflict, "sink " + sink + " has pending events");
    cursors.erase(sink);
    co_return Status{};
  }
  Task<Result<std::vector<std::string>>> sinks() override {
    std::vector<std::string> names;
    for (const auto& [name, cursor] : cursors) names.push_back(name);
    co_return names;
  }
  Task<Result<std::vector<core::StoredEvent>>> fetch(std::string sink, std::int64_t after, int limit) override {
    if (slow) co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    std::vector<core::StoredEvent> out;
    for (const auto& row : rows) {
      const bool routed = std::find(row.sinks.begin(), row.sinks.end(), sink) != row.sinks.end();
      if (routed && row.event.stamp.seq > after && out.size() < static_cast<std::size_t>(limit))
        out.push_back(row.event);
    }
    co_return out;
  }
  Task<Result<std::vector<core::StoredEvent>>> fetch_exact(std::string, std::vector<std::int64_t> seqs) override {
    std::vector<core::StoredEvent> out;
    for (const auto seq : seqs) out.push_back(rows.at(static_cast<std::size_t>(seq - 1)).event);
    co_return out;
  }
  bool full = false;     ///< nothing can be written
  bool durable = false;  ///< the last settlement had to be on the disk
  Task<Status> settle(core::SinkSettlement settlement) override {
    if (full) co_return fail(Code::unavailable, "database or disk is full");
    ++saves;
    durable = settlement.durable;
    auto& cursor = cursors[settlement.sink];
    cursor.low_water = settlement.low_water;
    const auto remove = [&cursor](std::int64_t seq) {
      std::erase_if(cursor.exceptions, [seq](const auto& state) { return state.seq == seq; });
    };
    for (const auto seq : settlement.settled) remove(seq);
    for (const auto& state : settlement.upsert) {
      remove(state.seq);
      cursor.exceptions.push_back(state);
    }
    for (const auto seq : settlement.dropped) remove(seq);
    if (settlement.notes) cursor.notes = *settlement.notes;
    for (auto& draft : settlement.events) store(std::move(draft));
    co_return Status{};
  }
  Task<Result<core::StoredEvent>> append(core::EventDraft draft) override {
    if (full) co_return fail(Code::unavailable, "database or disk is full");
    co_return store(std::move(draft));
  }
  core::StoredEvent store(core::EventDraft draft) {
    appended.push_back(std::get<core::AgentEvent>(draft.event));
    add("agent/a", draft.sinks);
    rows.back().event.agent_event = true;
    rows.back().event.what = appended.back().what;
    return rows.back().event;
  }
  Task<Result<bool>> prune(Nanos, Nanos) override { co_return false; }
  Task<Result<Backlog>> backlog() override { co_return Backlog{}; }
};

/// What a FakeSink got and how it answers. It must outlive the sink.
struct Script {
  core::RetryPolicy policy;
  std::function<Attempt(const core::StoredEvent&)> answer = [](const auto&) { return Attempt{}; };
  std::vector<std::string> sent;  ///< ids, with `+` appended for a replay
  bool hold = false;              ///< sends stay in flight until release()
  std::vector<std::shared_ptr<asio::steady_timer>> held;
  std::map<std::string, int> flying;  ///< per key
  int most_flying_of_a_key = 0, most_flying = 0, total_flying = 0;
  bool start_fails = false, flush_fails = false;
  std::optional<std::int64_t> lost_after;  ///< the next answer of check(), once
  int checks = 0;
  std::function<void()> while_checking;
  void release() {
    hold = false;
    for (auto& timer : held) timer->cancel();
    held.clear();
  }
  int count(const std::string& id) const { return static_cast<int>(std::count(sent.begin(), sent.end(), id)); }
};

class FakeSink final : public core::Sink {
 public:
  FakeSink(asio::any_io_executor core, Script& script) : core_(std::move(core)), script_(script) {}
  core::RetryPolicy policy() const override { return script_.policy; }
  Task<Status> start() override {
    if (script_.start_fails) co_return fail(Code::unavailable, "not there");
    co_return Status{};
  }
  Task<Attempt> send(core::StoredEvent event) override {
    script_.sent.push_back(event.stamp.id + (event.replay ? "+" : ""));
    script_.most_flying_of_a_key = std::max(script_.most_flying_of_a_key, ++script_.flying[event.key]);
    script_.most_flying = std::max(script_.most_flying, ++script_.total_flying);
    if (script_.hold) {
      auto timer = std::make_shared<asio::steady_timer>(core_, Time::max());
      script_.held.push_back(timer);
      boost::system::error_code ignored;
      co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    --script_.flying[event.key];
    --script_.total_flying;
    co_return script_.answer(event);
  }
  Task<Status> flush() override {
    if (script_.flush_fails) co_return fail(Code::unavailable, "disk full");
    co_return Status{};
  }
  Task<Result<std::optional<std::int64_t>>> check(std::map<std::string, std::string>&) override {
    ++script_.checks;
    if (script_.while_checking) script_.while_checking();
    co_return std::exchange(script_.lost_after, std::nullopt);
  }
  Task<void> stop() override { co_return; }
  std::string describe() const override { return "fake"; }

 private:
  asio::any_io_executor core_;
  Script& script_;
};

inline core::RetryPolicy webhook_policy() {
  using namespace std::chrono_literals;
  return {false, {0s, 5s, 5min, 30min, 2h, 5h, 10h, 14h, 20h, 24h}, 8};
}

}  // namespace driftd::delivery::test
