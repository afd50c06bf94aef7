// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/audit.hpp"
#include "core/ports/store.hpp"
#include "core/silence.hpp"

namespace driftd::core {

/// What the agent remembers of the notifications that it sent, and the silences. Threads and guarantees as Store.
class NotificationStore {
 public:
  virtual ~NotificationStore() = default;
  /// Returns all remembered states by name.
  virtual Task<Result<std::map<std::string, std::string>>> notification_states() = 0;
  /// A change of the states and the events that go with it. An empty state removes its row.
  struct Write {
    std::map<std::string, std::string> states;
    std::vector<EventDraft> events;
  };
  /// Writes both in one transaction, so that nothing is sent twice or forgotten when the process ends.
  virtual Task<Status> write_notifications(Write write) = 0;
  /// Returns the silences that have not expired at `now`, oldest first.
  virtual Task<Result<std::vector<Silence>>> silences(Nanos now) = 0;
  /// Adds a silence or replaces the one with its id, in one transaction with its line of the audit log.
  virtual Task<Status> write_silence(Silence silence, AuditEntry line) = 0;
};

}  // namespace driftd::core
