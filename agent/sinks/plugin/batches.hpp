// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ports/session.hpp"
#include "sinks/plugin/suspects.hpp"
#include "sinks/plugin/unflushed.hpp"

namespace driftd::sinks {

/// Bounds of the calls to a plugin: its own, or smaller ones of the configuration.
struct BatchBounds {
  std::size_t events = 1, bytes = 16u << 20, calls = 1;
  std::chrono::milliseconds timeout{20'000};
  std::string content_type;  ///< that the plugin takes now; an upgrade may change it
};

/// Puts events that wait at the same time into one deliver call, as many as the bounds allow; it waits for no more to
/// come. Each event gets exactly one answer: the plugin's verdict, or what follows from the end of the call. A worker
/// that ends costs its events an attempt of the sink and makes them suspects, which are sent one at a time with nothing
/// beside them. The caller never adds two events of one order key at the same time, and bounds how many wait
/// (RetryPolicy::max_in_flight). Core thread.
class Batches : public std::enable_shared_from_this<Batches> {
 public:
  using Answered = std::function<void(core::Attempt)>;
  explicit Batches(asio::any_io_executor core) : core_(std::move(core)) {}
  /// The session that takes the events from now on. Events that wait with another content type are answered with
  /// retry_sink, and come again in the new one.
  void use(std::shared_ptr<core::Session> session, BatchBounds bounds);
  void add(core::PluginEvent event, Answered answered);
  Unflushed& unflushed() { return unflushed_; }

 private:
  struct Item {
    std::string id;
    core::PluginEvent event;  ///< moved away once it is sent
    Answered answered;        ///< empty once it was called
  };
  using Items = std::vector<Item>;

  void send_soon();
  void send_waiting();
  Items take();
  bool suspect_waits() const;
  static Task<void> send(std::shared_ptr<Batches> self, std::shared_ptr<Items> items, bool alone);
  void settle(Item& item, core::SettledEvent settled);
  void answer_rest(Items& items, const core::DeliverEnd& end, bool alone);
  /// Answers what waits as the call that failed: the sink pauses, instead of trying each event for its whole time-out.
  void answer_waiting(const core::Attempt& failed);

  const asio::any_io_executor core_;
  std::shared_ptr<core::Session> session_;
  BatchBounds bounds_;
  std::deque<Item> waiting_;
  Suspects suspects_;
  Unflushed unflushed_;
  std::size_t calls_ = 0;  ///< under way
  bool alone_ = false;     ///< a suspect is under way
  bool woken_ = false;
};

/// Returns the outcome of an event about which the plugin gave no verdict before deliver ended (sink.h, `deliver`).
core::Attempt attempt_without_verdict(const core::DeliverEnd& end);

}  // namespace driftd::sinks
