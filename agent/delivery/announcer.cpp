// SPDX-License-Identifier: Apache-2.0
#include "delivery/announcer.hpp"

#include <boost/asio/as_tuple.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"

namespace driftd::delivery {
namespace {

constexpr std::chrono::milliseconds kFirst{1'000};
constexpr std::chrono::milliseconds kMost{30'000};
constexpr std::size_t kWaiting = 10'000;  // maximum of events in memory while the store is unavailable

}  // namespace

Announcer::Announcer(asio::any_io_executor core, core::Outbox& outbox, Routes routes, std::function<void()> stored)
    : core_(core),
      outbox_(outbox),
      routes_(std::move(routes)),
      stored_(std::move(stored)),
      retry_timer_(core),
      backoff_(kFirst, kMost) {}

void Announcer::publish(core::AgentEvent event) {
  if (waiting_.size() >= kWaiting) {
    log::room("store").error("agent event {} is lost: {} others wait for the store: {}", event.what, kWaiting,
                             event.message);
    return;
  }
  waiting_.push_back(std::move(event));
  if (std::exchange(storing_, true)) return;
  asio::co_spawn(core_, run(), fatal);
}

void Announcer::stop() {
  stopping_ = true;
  retry_timer_.cancel();
}

void Announcer::give_up(const Error& error) {
  for (const auto& event : waiting_) {
    log::room("store").error("agent event {} is lost: the agent stops and the store does not take it ({}): {}",
                             event.what, error.message, event.message);
  }
  waiting_.clear();
}

Task<void> Announcer::run() {
  const auto self = shared_from_this();
  while (!waiting_.empty()) {
    core::EventDraft draft;
    draft.sinks = routes_(waiting_.front());
    draft.event = waiting_.front();
    const bool last_chance = stopping_;
    const auto stored = co_await outbox_.append(std::move(draft));
    if (stored) {
      waiting_.pop_front();
      backoff_.reset();
      stored_();
    } else if (last_chance) {
      give_up(stored.error());
    } else {
      const auto wait = backoff_.next();
      log::room("store").error("agent event {}: {}; trying again in {} ms", waiting_.front().what,
                               stored.error().message, wait.count());
      retry_timer_.expires_after(wait);
      if (!stopping_) co_await retry_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }
  storing_ = false;
}

}  // namespace driftd::delivery
