// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driftd/consumer/backend.hpp"
#include "driftd/consumer/credentials.hpp"
#include "driftd/consumer/event.hpp"
#include "driftd/consumer/slot.hpp"

namespace driftd::consumer {

/// How to reach the stream of events.
struct NatsAccess {
  std::vector<std::string> servers;  ///< `nats://host:4222`; empty: no events, the application hands them over itself
  std::string stream = "DRIFT";
  std::string domain;  ///< JetStream domain; empty: none
  std::string user;
  Secret password, token;
  std::string credentials_file;  ///< .creds
  bool tls = false;
  std::string tls_ca, tls_cert, tls_key;  ///< files
};

enum class LogLevel { debug, info, warning, error };

struct RunnerSettings {
  std::string pattern;   ///< subscriber id and label of the metrics; 1 to 128 bytes
  std::string instance;  ///< tells replicas of a pattern apart; each needs a name that it keeps (a StatefulSet's pod
                         ///< name)
  std::vector<SlotBinding> slots;  ///< 1 to 1,024
  NatsAccess nats;
  std::string checkpoint;  ///< file of what was applied; empty: memory only, after a restart some events come again
  std::chrono::milliseconds start_timeout{30'000};         ///< start() fails if a slot has no connection by then
  std::chrono::milliseconds resolve_timeout{5'000};        ///< for the credentials of one slot
  std::chrono::milliseconds credential_patience{180'000};  ///< how long a rotated credential may keep its old value: a
                                                           ///< mounted Secret follows only after a minute or two
  std::chrono::milliseconds reconnect_spread{250};         ///< minimum time over which the slots of a backend reconnect
  std::chrono::milliseconds reconnect_spread_per_slot{40};
  std::chrono::milliseconds retry_first{250}, retry_max{30'000};
  int breaker_failures = 5;  ///< consecutive failures of a backend that open its circuit
  std::chrono::milliseconds breaker_first{5'000}, breaker_max{60'000};
  int max_parallel_connects = 8;
  std::chrono::hours absence{7 * 24};  ///< after so long without this instance the server forgets its position
  std::function<void(LogLevel, const std::string&)> log;  ///< any thread; empty: stderr, without debug
};

struct SlotStatus {
  std::string slot, backend;  ///< `backend` is the one in use, which may be an alternate; empty: not connected
  std::string last_error;     ///< empty if the last attempt succeeded
  std::chrono::steady_clock::time_point connected_at{};
};
struct SubscriptionStatus {
  std::string backend;
  bool connected = false;
  std::string last_error;
};
struct RunnerStatus {
  std::vector<SlotStatus> slots;
  std::vector<SubscriptionStatus> subscriptions;
};

/// Binds the slots of a pattern to backends and keeps them bound while the backends change. Any thread, except start()
/// and stop().
class PatternRunner {
 public:
  /// Returns `invalid` for settings that cannot work, and names the setting.
  static Result<std::unique_ptr<PatternRunner>> create(RunnerSettings settings, std::shared_ptr<BackendSource> source,
                                                       std::shared_ptr<SlotFactory> factory, Resolvers resolvers = {});
  ~PatternRunner();  ///< calls stop()
  PatternRunner(const PatternRunner&) = delete;
  PatternRunner& operator=(const PatternRunner&) = delete;

  /// Binds all slots, then subscribes, then calls `process`, and returns what it returns. Fails with `failed to bind
  /// slot <slot>: …` if a slot has no connection after `start_timeout`. A server of events that cannot be reached is no
  /// failure: the subscription is tried until it stands, and nothing is missed. Once.
  Status start(const std::function<Status()>& process = {});
  /// Ends the subscription and disconnects all slots. May be called again.
  void stop();

  /// Returns the slot's connection for one operation, or null while there is none. Do not keep it: it is replaced when
  /// the backend changes, and the old one is disconnected.
  std::shared_ptr<Slot> slot(const std::string& name) const;
  /// Tells that an operation on this connection failed because of the connection. It is replaced, unless it already
  /// was.
  void report_broken(const std::string& name, const std::shared_ptr<Slot>& connection);

  /// Handles an event that came another way than NATS. Returns `not_found` ("no slot found for backend X") for a
  /// backend that no slot is bound to. An event that was handled before, or is older, changes nothing.
  Status handle_backend_event(const BackendEvent& event);
  /// Loads every description again: for a gap in the events.
  void resync();

  RunnerStatus status() const;
  /// The three metrics of the RFC in Prometheus' text format.
  std::string metrics() const;

 private:
  struct Parts;
  explicit PatternRunner(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace driftd::consumer
