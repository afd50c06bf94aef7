// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "core/ports/notifications.hpp"
#include "core/ports/reader.hpp"
#include "delivery/notify.hpp"

namespace driftd::delivery {

/// What the notifier needs. All of it must outlive it until idle().
struct NotifierNeeds {
  asio::any_io_executor core;
  core::Reader* reader = nullptr;
  core::NotificationStore* store = nullptr;
  const Clock* clock = nullptr;
  std::string agent, cluster;
  std::function<std::vector<std::string>(const core::AgentEvent&)> routes;
  std::function<void()> stored;  ///< wakes the relay
  struct Backend {
    std::map<std::string, std::string> labels;
    bool down = false;
  };
  std::function<std::map<std::string, Backend>()> backends;  ///< by name
  std::function<std::string(const core::Drift&)> ref;        ///< `ID@DIGEST` [any thread]
};

/// Looks at the drifts that wait for a decision after each commit, and when something may be due, and writes
/// notifications into the outbox together with what it remembers of them: a process that ends in between sends none
/// twice and forgets none. Core thread.
class Notifier : public std::enable_shared_from_this<Notifier> {
 public:
  Notifier(NotifierNeeds needs, NotifySettings settings);
  void start();
  void wake();  ///< drifts, silences or the health of a backend may have changed
  void stop();
  bool idle() const { return !running_; }
  /// Looks once. Fails only with an error of the store; then nothing was sent. start() does this again and again.
  Task<Status> look();

 private:
  Task<void> run();
  Task<Result<NotifyInput>> gather(Nanos now);
  core::EventDraft draft(const Note& note) const;
  std::chrono::nanoseconds wait_time() const;

  NotifierNeeds needs_;
  NotifySettings settings_;
  asio::steady_timer timer_;
  NotifyState state_;
  std::map<std::string, std::string> stored_;  ///< the states as they are in the store
  bool loaded_ = false;
  bool woken_ = true, running_ = false, stopping_ = false;
  Nanos next_ns_ = 0;
  std::chrono::steady_clock::time_point last_look_{};
};

}  // namespace driftd::delivery
