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

/// What an error of the client library, or one that a broker answered, says the scheduler must do. `text`: the words
/// that came with it; null: the code's own.
Outcome outcome_of(rd_kafka_resp_err_t error, const char* text = nullptr);

/// One client of librdkafka: its threads and connections, and what it complained of. Never joins a consumer group,
/// never creates a topic. Thread-safe; the threads of the library call only the functions below, never the host.
class Handle {
 public:
  /// No I/O yet. Throws sdk::Failure: INVALID (a file that cannot be used, a mechanism that the library does not have),
  /// UNAUTHENTICATED (a bearer token that has expired).
  static std::shared_ptr<Handle> open(sdk::Call& call, const Settings& settings);
  ~Handle();  ///< at once: the library's threads are waited for aside, and here for a second at timeout
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  rd_kafka_t* get() const { return client_; }
  void serve() { rd_kafka_poll(client_, 0); }  ///< lets the library tell its errors; does not block

  /// The last error that says why there is no connection.
  struct LastError {
    Outcome outcome;
    bool all_down = false;  ///< every known broker was tried and failed since the last answer
  };
  LastError last_error() const;
  void note_answer();  ///< a broker did what was asked: the last_error is over
  bool has_answered() const;

  /// What the library's threads touch; lives until the last of them has ended.
  struct Shared {
    std::string server_name;
    mutable std::mutex mutex;
    LastError last_error;
    bool answered = false;
  };

 private:
  Handle() = default;

  rd_kafka_t* client_ = nullptr;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

/// Waits in slices and ends at the call's deadline, at cancellation, or after `timeout`. Lives within one call.
class Wait {
 public:
  Wait(sdk::Call& call, std::chrono::milliseconds timeout, driftd_status late, std::string doing);
  /// How long to block before asking again, at least 1 ms. Throws sdk::Failure: CANCELLED, DEADLINE, `late`; and what
  /// the handle is in last_error with, once it is sure that no answer will come.
  std::chrono::milliseconds slice(Handle& handle) const;
  std::chrono::milliseconds left() const;  ///< until the nearest end; 0 when it passed

 private:
  sdk::Call& call_;
  std::int64_t began_, until_;
  driftd_status late_;
  std::string doing_;
  std::chrono::milliseconds timeout_;
};

}  // namespace driftd::kafka
