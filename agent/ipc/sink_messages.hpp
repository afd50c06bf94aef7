// SPDX-License-Identifier: Apache-2.0
// Messages of the calls of a sink plugin, like those in messages.hpp.
#pragma once

#include "core/ports/sink_plugin.hpp"
#include "ipc/messages.hpp"

namespace driftd::core {

constexpr Attempt::Outcome last_of(Attempt::Outcome) { return Attempt::Outcome::disabled; }

template <class A>
void fields(A& a, PluginEvent& v) {
  a(v.id, v.source, v.type, v.subject, v.topic, v.order_key, v.sequence, v.incarnation, v.time_ns, v.replay,
    v.agent_event, v.content_type, v.body, v.attributes);
}

}  // namespace driftd::core

namespace driftd::ipc {

/// deliver: a batch of events. Its verdicts come back as `settled` frames before the result. A payload beyond
/// kMaxPayload is preceded by `part` frames of the same call, which hold its beginning.
struct DeliverCall {
  std::int64_t deadline_ns = 0;
  std::vector<core::PluginEvent> events;  ///< at least one
};
template <class A>
void fields(A& a, DeliverCall& v) {
  a(v.deadline_ns, v.events);
}

/// settled: verdicts about events of the batch, worker → agent. Cost no credit: each event has at most one.
struct Settlement {
  std::uint32_t index = 0;
  core::Attempt::Outcome outcome = core::Attempt::Outcome::delivered;
  std::int64_t retry_after_ms = 0;
  std::string detail;  ///< printable, without secrets
};
template <class A>
void fields(A& a, Settlement& v) {
  a(v.index, v.outcome, v.retry_after_ms, v.detail);
}

}  // namespace driftd::ipc
