// SPDX-License-Identifier: Apache-2.0
// Events as a consumer of JetStream reads them. Whoever includes this must link driftd_proto.
#pragma once

#include <gtest/gtest.h>
#include <algorithm>
#include <string>
#include <vector>

#include "driftd/v1/event.pb.h"
#include "support/nats.hpp"

namespace driftd::test {

using Event = driftd::v1::BackendChangeEvent;

/// Returns all events about backends in the stream DRIFT, in their order.
inline std::vector<Event> stream_events(const NatsServer& server) {
  std::vector<Event> out;
  for (const auto& message : stream_contents(server.url(), "DRIFT")) {
    Event event;
    if (message.subject.rfind("backend.", 0) == 0 && event.ParseFromString(message.body))
      out.push_back(std::move(event));
  }
  return out;
}

/// The event that a test waits for. An empty `what`, `status`, `operation` or `field` matches everything.
struct Expected {
  std::string backend, resource;  ///< `cache`, `server/server`
  std::string what;               ///< what follows `backend.<name>.`: `config.updated`
  std::string status;             ///< pending, auto-applied, reverted …
  std::string operation;          ///< changed, created …
  std::string field;              ///< the beginning of the path after `<kind>/<id>:`
};

inline bool matches(const Event& event, const Expected& e) {
  const std::string resource = event.resource_kind() + "/" + event.resource_id();
  const auto has_field = [&] {
    return std::any_of(event.changed_fields().begin(), event.changed_fields().end(),
                       [&](const auto& field) { return field.rfind(e.resource + ":" + e.field, 0) == 0; });
  };
  return event.backend_name() == e.backend && resource == e.resource && (e.what.empty() || event.what() == e.what) &&
         (e.status.empty() || event.reconciliation_status() == e.status) &&
         (e.operation.empty() || event.operation() == e.operation) && (e.field.empty() || has_field());
}

/// Waits until the stream holds `count` such events.
inline testing::AssertionResult arrives(const NatsServer& server, const Expected& expected, long count = 1) {
  std::vector<Event> seen;
  const bool arrived = eventually(
      [&] {
        seen = stream_events(server);
        return std::count_if(seen.begin(), seen.end(), [&](const auto& one) { return matches(one, expected); }) >=
               count;
      },
      std::chrono::seconds(30));
  if (arrived) return testing::AssertionSuccess();
  auto result = testing::AssertionFailure();
  result << expected.backend << "/" << expected.resource << " " << expected.what << " " << expected.status << " "
         << expected.operation << " " << expected.field
         << " did not arrive. The stream has these events about the resource:";
  for (const auto& event : seen) {
    if (event.backend_name() != expected.backend ||
        event.resource_kind() + "/" + event.resource_id() != expected.resource)
      continue;
    result << "\n  " << event.what() << " " << event.reconciliation_status() << " " << event.operation();
    for (const auto& field : event.changed_fields()) result << " " << field;
  }
  return result;
}

}  // namespace driftd::test
