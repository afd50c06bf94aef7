// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>

#include "base/backoff.hpp"
#include "core/ports/store.hpp"

namespace driftd::delivery {

/// Stores the agent's own events (`parked`, `budget`, …) in the outbox, in order. An event that the store cannot take
/// is tried again until it can. Core thread. Lifetime: the outbox must outlive it until idle().
class Announcer : public std::enable_shared_from_this<Announcer> {
 public:
  /// Returns the sinks of an event. Called when the event is stored.
  using Routes = std::function<std::vector<std::string>(const core::AgentEvent&)>;
  /// Calls `stored` after each event that was stored.
  Announcer(asio::any_io_executor core, core::Outbox& outbox, Routes routes, std::function<void()> stored);

  /// Takes an event and returns at once. If 10,000 events wait already, the event is lost, which is logged as an error.
  void publish(core::AgentEvent event);
  /// Gives each waiting event one more attempt. If that fails, the event is only logged.
  void stop();
  bool idle() const { return !storing_; }  ///< nothing waits and no attempt is under way

 private:
  /// Stores the waiting events one after the other and ends when none is left. It keeps the object alive meanwhile.
  Task<void> run();
  /// Logs each waiting event as lost and drops it.
  void give_up(const Error& error);

  asio::any_io_executor core_;
  core::Outbox& outbox_;
  Routes routes_;
  std::function<void()> stored_;          ///< wakes the relay
  std::deque<core::AgentEvent> waiting_;  ///< the first one is being stored
  asio::steady_timer retry_timer_;
  Backoff backoff_;                          ///< 1 s to 30 s
  bool storing_ = false, stopping_ = false;  ///< `storing_`: run() is under way
};

}  // namespace driftd::delivery
