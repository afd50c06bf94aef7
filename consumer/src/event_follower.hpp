// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint.hpp"
#include "log.hpp"
#include "nats_link.hpp"

namespace driftd::consumer {

/// A message of the stream. Views are valid only during the call of the handler.
struct StreamMessage {
  std::string subject;
  std::string_view body;
  std::string id, key;  ///< headers ce-id and ce-partitionkey; empty if absent
  EventOrder order;     ///< headers ce-driftincarnation and ce-driftseq; 0 if absent
};

/// Which messages a follower wants, and from where on.
struct Following {
  std::string name;     ///< the backend, in the checkpoint and in the status
  std::string subject;  ///< filter of the durable consumer
  std::string durable;
  std::int64_t since_ns = 0;  ///< where the very first consumer begins: before the slots were bound
  std::chrono::nanoseconds absence{};
};

/// Follows one subject of the stream by a durable pull consumer, on a thread of its own. Each message is handled, then
/// the checkpoint is written, then it is acknowledged: a kill in between makes it come again, and it is a duplicate
/// then. A consumer that somebody deleted is made again after the last message that was handled; after a stream that
/// was made again or lost messages, from its beginning.
class EventFollower {
 public:
  using Handler = std::function<void(const StreamMessage&)>;  ///< must not throw

  EventFollower(NatsLink& link, Checkpoint& checkpoint, Following following, Handler handler, Log log);
  ~EventFollower();
  void stop();
  SubscriptionStatus status() const;

 private:
  void run();
  Status ensure_consumer();
  Status make_consumer(const jsStreamInfo& stream, const BackendMemory& memory);
  bool subscribe();
  void follow();
  bool request();
  bool is_message(natsMsg* message);
  void take(Owned<natsMsg> first);
  void handle(natsMsg* message);
  void note(const std::string& error);
  void pause(std::chrono::milliseconds time);

  NatsLink& link_;
  Checkpoint& checkpoint_;
  const Following following_;
  const Handler handler_;
  const Log log_;
  std::string inbox_;
  Owned<natsSubscription> subscription_;
  int outstanding_ = 0;  ///< messages of the last request that may still come
  bool gone_ = false;    ///< the server says that the consumer does not exist
  std::chrono::steady_clock::time_point request_ends_{};
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  bool standing_ = false;
  std::string error_ = "not connected yet";
  std::thread thread_;
};

}  // namespace driftd::consumer
