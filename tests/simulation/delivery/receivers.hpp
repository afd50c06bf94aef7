// SPDX-License-Identifier: Apache-2.0
// Models of what stands behind a sink: a stream, a webhook's endpoint, a file. Each outlives the agent's processes. The
// sinks in front of them decide with the code of the real ones (sinks/common/marks, attempt_of of sinks/webhook).
#pragma once

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/ports/sink.hpp"
#include "simulation/delivery/oracle.hpp"

namespace driftd::sim {

/// What all models share. One thread.
class Receiver {
 public:
  Receiver(std::string name, AllowedWaits waits, std::uint64_t seed) : receipts(std::move(name), waits), random(seed) {}
  virtual ~Receiver() = default;
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// A sink of a new process of the agent. The model outlives it.
  virtual std::unique_ptr<core::Sink> connect() = 0;
  /// Begins a random disturbance. It lasts until heal().
  virtual void disturb() = 0;
  virtual void heal() = 0;
  /// The machine of the agent lost its power.
  virtual void power_lost() {}

  bool chance(double of) { return std::uniform_real_distribution<double>(0, 1)(random) < of; }
  Duration between(Duration low, Duration high) {
    return Duration(std::uniform_int_distribution<Duration::rep>(low.count(), high.count())(random));
  }
  /// How long an answer takes.
  Duration latency() {
    return between(std::chrono::microseconds(200),
                   slow ? std::chrono::milliseconds(150) : std::chrono::milliseconds(8));
  }

  Receipts receipts;
  Oracle* oracle = nullptr;
  std::mt19937_64 random;
  bool slow = false;
};

/// A stream of a broker as JetStream keeps one: acknowledgements, a window in which it recognises duplicates, a leader
/// that changes; and messages that it had acknowledged and lost.
class Stream final : public Receiver {
 public:
  explicit Stream(std::uint64_t seed) : Receiver("bus", {true, std::chrono::seconds(8)}, seed) {}
  std::unique_ptr<core::Sink> connect() override;
  void disturb() override;
  void heal() override;

  struct Message {
    std::string id;  ///< of the message: that of its event, or of a replay
    Time at{};
    std::string event;
  };
  struct Ack {
    std::uint64_t stream_seq = 0;
    bool duplicate = false;
  };
  /// Takes a message with this id, by which it knows duplicates.
  Ack append(const core::StoredEvent& event, const std::string& id);
  /// Its machine died before the newest `count` messages were on its disk.
  void lose_tail(std::size_t count);
  bool holds(std::uint64_t stream_seq, const std::string& id) const;
  /// How long the next acknowledgement takes: those of a connection come in order.
  Duration time_of_ack();
  void go_down();
  /// Each sink in front of it is connected anew.
  void reconnect();

  bool up = true;
  double ack_lost = 0;  ///< chance that a message is stored and its acknowledgement never comes
  std::uint64_t connection = 1;
  std::uint64_t created = 1;
  std::function<void()> reconnected = [] {};

 private:
  void lose(std::size_t kept, bool created_anew, bool behind_its_back);

  std::vector<Message> messages_;
  Time last_ack_{};
  std::map<std::string, std::uint64_t> newest_of_id_;
};

/// A webhook's endpoint.
class Hook final : public Receiver {
 public:
  explicit Hook(std::uint64_t seed) : Receiver("hook", {false, std::chrono::seconds(20)}, seed) {}
  std::unique_ptr<core::Sink> connect() override;
  void disturb() override;
  void heal() override;

  void refuse();
  enum class Mode { accepts, refuses_connections, hangs, answers, loses_answers, gone };
  Mode mode = Mode::accepts;
  long status = 503;  ///< of Mode::answers
  std::int64_t retry_after_ms = 0;
  double share = 1;                ///< of the requests that the mode concerns
  std::string only_key;            ///< the mode concerns events of this key only; empty: all
  std::set<std::string> poisoned;  ///< ids of events that it always answers with 400
  std::set<std::string> keys;      ///< that it has seen
  bool disabled = false;           ///< it answered 410: the sink waits for the next process
  void next_life();
};

/// A file, of which a power loss leaves what was flushed.
class LogFile final : public Receiver {
 public:
  LogFile(std::string name, std::uint64_t seed) : Receiver(std::move(name), {true, std::chrono::seconds(1)}, seed) {}
  std::unique_ptr<core::Sink> connect() override;
  void disturb() override;
  void heal() override;
  void power_lost() override;

  void fail_writes();
  bool flush_fails = false, write_fails = false;
  std::size_t flushed = 0;  ///< lines
};

}  // namespace driftd::sim
