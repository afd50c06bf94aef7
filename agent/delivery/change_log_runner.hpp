// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "core/ports/change_log.hpp"

namespace driftd::delivery {

/// What the runner needs. All of it must outlive it until idle().
struct ChangeLogNeeds {
  asio::any_io_executor core;
  core::ChangeLogStore* store = nullptr;
  core::ChangeLogReceiver* receiver = nullptr;
  const Clock* clock = nullptr;
  std::function<void()> event_stored;  ///< wakes the relay, after an event about the change log; may be empty
  std::int64_t max_backlog_bytes = 0;  ///< of waiting entries; above it the oldest are given up
  /// After a failed call; then twice as long each time.
  std::chrono::milliseconds first_wait{250}, max_wait{5'000};
};

/// Sends the entries of the change log in order and remembers in the store how far it got, after the receiver has
/// written them. A receiver that is away, slow or full is tried again for ever. An entry that it refuses is sent
/// without the states of the resource, and given up, with an event, if that is refused, too: the entries behind it go
/// on. One that breaks the connection is asked about in the same way, after the receiver was seen to answer without it.
/// Core thread.
class ChangeLogRunner : public std::enable_shared_from_this<ChangeLogRunner> {
 public:
  explicit ChangeLogRunner(ChangeLogNeeds needs);
  void start();
  void wake();  ///< an operation may have ended
  /// Ends a call in progress; what it sent is sent again by the next process.
  void stop();
  bool idle() const { return !running_; }
  core::ChangeLogView view() const;

 private:
  using Answer = core::ChangeLogReceiver::Answer;
  using Entries = std::vector<core::ChangeEntry>;
  using Settlement = core::ChangeLogSettlement;

  Task<void> run();
  /// Sends one batch. An error is the store's.
  Task<Status> look();
  Task<Status> send(Entries entries);
  /// Sends each refused entry again without its bodies. False: the receiver failed meanwhile.
  Task<bool> send_refused_bare(Entries entries, std::vector<std::string> refusals, Settlement& to);
  Task<Status> settle(Settlement settlement, std::int64_t written);
  void note_missing_rows(const Entries& entries, Settlement& to) const;
  /// After a failed call. Returns true if the entry at the head must be given up.
  bool blame_head(const Answer& answer, const Entries& entries);
  void note_failure(const std::string& text);
  std::chrono::nanoseconds wait_time() const;

  const ChangeLogNeeds needs_;
  asio::steady_timer timer_;
  Backoff backoff_;
  core::ChangeLogPosition position_;
  std::string fault_;  ///< why nothing can be sent; empty if that is not known
  std::int64_t sent_ = 0, failures_ = 0;
  struct Head {
    std::int64_t sequence = 0;  ///< of the entry that was at the head of the last failed calls
    int strikes = 0;
    bool bare = false;
  } head_;
  std::chrono::steady_clock::time_point next_try_{}, last_look_{}, last_limit_{}, failing_since_{};
  bool woken_ = true, running_ = false, stopping_ = false;
  bool stall_reported_ = false;
};

}  // namespace driftd::delivery
