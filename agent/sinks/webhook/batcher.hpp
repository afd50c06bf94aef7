// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "sinks/webhook/call.hpp"
#include "sinks/webhook/http.hpp"
#include "sinks/webhook/settings.hpp"

namespace driftd::sinks {

/// The answer to the request that an event was in.
struct BatchAnswer {
  HttpAnswer http;
  /// How many events share it. If there are several and it is not a success, a lost connection or a 410, it says
  /// nothing about any one of them.
  std::size_t events = 1;
};

/// Puts events that wait at the same time into one request, as many as the bounds allow; it waits for no more to come.
/// A batch that is refused is taken apart, and each of its events is sent alone, now and until it is delivered, so that
/// an event is only ever blamed for its own answer. Core thread; every part gets exactly one answer.
class Batcher : public std::enable_shared_from_this<Batcher> {
 public:
  using Answered = std::function<void(BatchAnswer)>;
  /// Sends one request and calls back on the core thread, exactly once.
  using Post = std::function<void(Call, std::function<void(HttpAnswer)>)>;

  Batcher(WebhookBatch bounds, std::size_t max_requests, asio::any_io_executor core, Post post);
  /// The caller bounds the number of parts that wait (RetryPolicy::max_in_flight).
  void add(BatchPart part, Answered answered);
  /// The event will not come again: it was delivered or given up.
  void forget(const std::string& id) { alone_.erase(id); }

 private:
  struct Group;  ///< the events of one refused batch
  struct Item {
    BatchPart part;
    Answered answered;
    std::shared_ptr<Group> group;  ///< null: it is not of a batch that was refused just now
  };
  using Items = std::vector<Item>;

  void send_soon();
  void send_waiting();
  Items take();
  void send(Items items);
  void take_answer(Items items, HttpAnswer answer);
  void take_apart(Items items, const HttpAnswer& answer);
  void give_up(const std::shared_ptr<Group>& group, const HttpAnswer& answer);
  void remember(const std::string& id);

  const WebhookBatch bounds_;
  const std::size_t max_requests_;
  const asio::any_io_executor core_;
  const Post post_;
  std::deque<Item> waiting_, apart_;  ///< `apart_`: of refused batches, to be sent alone before the others
  std::set<std::string> alone_;       ///< ids that are never put into a batch again
  std::size_t requests_ = 0;          ///< under way
  bool woken_ = false;
};

}  // namespace driftd::sinks
