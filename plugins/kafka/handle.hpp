// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librdkafka/rdkafka.h>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "driftd/sdk/call.hpp"
#include "kafka/model.hpp"
#include "kafka/settings.hpp"

namespace driftd::kafka {

/// Maps an error of the client library, or one that a broker sent, to the code that tells the scheduler what to do.
/// `text` is the message that came with it; null: the default text of the code.
Outcome outcome_of(rd_kafka_resp_err_t error, const char* text = nullptr);

/// One client of librdkafka: its threads, its connections and its last error. It never joins a consumer group and never
/// creates a topic. Thread-safe. The library's threads call only the functions below, never the host.
class Handle {
 public:
  /// Creates a client without any I/O. Throws INVALID (a file cannot be used, the library lacks a mechanism) or
  /// UNAUTHENTICATED (the bearer token has expired).
  static std::shared_ptr<Handle> open(sdk::Call& call, const Settings& settings);
  ~Handle();  ///< waits at most one second for the library's threads; the rest ends in the background
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  rd_kafka_t* get() const { return client_; }  ///< borrowed
  void serve() { rd_kafka_poll(client_, 0); }  ///< delivers the library's errors; does not block

  /// The last error that explains why there is no connection.
  struct LastError {
    Outcome outcome;
    bool all_down = false;  ///< every known broker has failed since the last answer
  };
  LastError last_error() const;
  void note_answer();         ///< a broker has answered: clears the last error
  bool has_answered() const;  ///< any broker, since open()

  /// State that the library's threads use; it lives until the last of them has ended.
  struct Shared {
    std::string server_name;  ///< that the broker's certificate must carry
    mutable std::mutex mutex;
    LastError last_error;
    bool answered = false;  ///< a broker has answered
  };

 private:
  Handle() = default;

  rd_kafka_t* client_ = nullptr;  ///< owned
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

/// Waits in slices until the deadline of the call, cancellation, or `timeout`. Lives within one call.
class Wait {
 public:
  /// `late` is the code for a time-out, `doing` what the error text says was going on: `asking for the ACLs`.
  Wait(sdk::Call& call, std::chrono::milliseconds timeout, driftd_status late, std::string doing);
  /// Returns how long to block before the next check, at least 1 ms. Throws CANCELLED, DEADLINE or `late`; throws the
  /// last error of the handle once no answer can be expected.
  std::chrono::milliseconds slice(Handle& handle) const;
  std::chrono::milliseconds left() const;  ///< time until the nearest of these ends; 0 if it has passed

 private:
  sdk::Call& call_;
  std::int64_t began_, until_;  ///< monotonic, nanoseconds
  driftd_status late_;
  std::string doing_;
  std::chrono::milliseconds timeout_;
};

}  // namespace driftd::kafka
