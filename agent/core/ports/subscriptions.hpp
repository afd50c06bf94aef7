// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/audit.hpp"
#include "core/event/event.hpp"

namespace driftd::core {

/// A stored BackendEventSubscription: who wants which events, and where they are sent.
struct Subscription {
  std::string subscriber;                  ///< its id: unique, valid by invalid_name_reason()
  std::vector<std::string> backend_names;  ///< names or globs; empty: all
  std::vector<ChangeType> event_types;     ///< empty: all
  std::string callback_endpoint;           ///< HOST:PORT; empty: it reads by itself
  friend bool operator==(const Subscription&, const Subscription&) = default;
};

/// The stored subscriptions, with the threads and guarantees of Store: a call that returned is durable.
class Subscriptions {
 public:
  virtual ~Subscriptions() = default;
  /// Returns all of them, by id.
  virtual Task<Result<std::vector<Subscription>>> subscriptions() = 0;
  /// Writes one, in one transaction with its line of the audit log; replaces the one with its id.
  virtual Task<Status> put_subscription(Subscription subscription, AuditEntry line) = 0;
  /// Deletes one, in one transaction with its line. Not an error if there is none.
  virtual Task<Status> delete_subscription(std::string subscriber, AuditEntry line) = 0;
};

}  // namespace driftd::core
