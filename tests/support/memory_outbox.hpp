// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>
#include <vector>

#include "core/ports/store.hpp"

namespace driftd::test {

/// An outbox in memory that routes every event to every sink: what the relay needs of the store, without a disk. Core
/// thread.
class MemoryOutbox final : public core::Outbox {
 public:
  std::vector<core::StoredEvent> events;  ///< seq = position + 1
  std::map<std::string, core::SinkCursor> cursors;
  std::size_t most_bytes = 0;  ///< the maximum of the payload bytes that one fetch() returned

  bool hold_settle = false;  ///< a settlement is not answered until release_settle(); one at a time
  asio::steady_timer* held_settle = nullptr;

  void release_settle() {
    hold_settle = false;
    if (held_settle != nullptr) held_settle->cancel();
  }
  void add(core::StoredEvent event) {
    event.stamp.seq = static_cast<std::int64_t>(events.size()) + 1;
    events.push_back(std::move(event));
  }
  Task<Result<core::SinkCursor>> open_sink(std::string sink) override {
    cursors[sink].sink = sink;
    co_return cursors[sink];
  }
  Task<Status> close_sink(std::string sink, bool) override {
    cursors.erase(sink);
    co_return Status{};
  }
  Task<Result<std::vector<std::string>>> sinks() override {
    std::vector<std::string> names;
    for (const auto& [name, cursor] : cursors) names.push_back(name);
    co_return names;
  }
  Task<Result<std::vector<core::StoredEvent>>> fetch(std::string, std::int64_t after, int limit) override {
    const auto from = events.begin() + std::min<std::int64_t>(after, static_cast<std::int64_t>(events.size()));
    std::vector<core::StoredEvent> out;
    std::size_t bytes = 0;
    for (auto event = from;
         event != events.end() && out.size() < static_cast<std::size_t>(limit) && bytes < kMaxAnswerBytes; ++event) {
      out.push_back(*event);
      bytes += event->payload.size();
    }
    most_bytes = std::max(most_bytes, bytes);
    co_return out;
  }
  Task<Result<std::vector<core::StoredEvent>>> fetch_exact(std::string, std::vector<std::int64_t> seqs) override {
    std::vector<core::StoredEvent> out;
    std::size_t bytes = 0;
    for (const auto seq : seqs) {
      if (bytes >= kMaxAnswerBytes) break;
      out.push_back(events.at(static_cast<std::size_t>(seq - 1)));
      bytes += out.back().payload.size();
    }
    co_return out;
  }
  Task<Status> settle(core::SinkSettlement settlement) override {
    if (hold_settle) {
      asio::steady_timer held(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
      held_settle = &held;
      co_await held.async_wait(asio::as_tuple(asio::use_awaitable));
      held_settle = nullptr;
    }
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
    co_return Status{};
  }
  Task<Result<core::StoredEvent>> append(core::EventDraft) override { co_return core::StoredEvent{}; }
  Task<Result<bool>> prune(Nanos, Nanos) override { co_return false; }
  Task<Result<Backlog>> backlog() override { co_return Backlog{}; }
};

}  // namespace driftd::test
