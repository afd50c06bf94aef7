// SPDX-License-Identifier: Apache-2.0
// Messages beside the answers of calls, like those in messages.hpp. Each belongs to the call that its frame names.
#pragma once

#include <string>

#include "ipc/wire_fields.hpp"

namespace driftd::ipc {

/// log: a line that the plugin wrote, worker → agent. Costs no credit: a worker sends 20 a second, bursts of 100.
struct LogLine {
  std::int32_t level = 0;  ///< DRIFTD_LOG_*; the agent clamps others
  std::string text;        ///< with its keys and values behind it, printable, without secrets
};
template <class A>
void fields(A& a, LogLine& v) {
  a(v.level, v.text);
}
/// metric: a value that the plugin set, worker → agent. Costs credit, which the agent gives back without a page.
struct Gauge {
  std::string name, value;  ///< a name of describe().metrics; value as decimal text
};
template <class A>
void fields(A& a, Gauge& v) {
  a(v.name, v.value);
}
/// credit: how much more the worker may send in this call, agent → worker. A call begins with kCallCredit.
struct Credit {
  std::uint64_t bytes = 0;  ///< of frames that the agent has handled, headers included
};
template <class A>
void fields(A& a, Credit& v) {
  a(v.bytes);
}
/// permit: the plugin waits for a rate limiter of the agent, worker → agent. One at a time for each call.
struct PermitRequest {
  std::uint64_t ticket = 0;  ///< counts the requests of the call, so that a late answer is not taken for the next one
  std::string bucket;        ///< name of the rate limiter, as the plugin chose it; one set for each backend
  std::uint32_t tokens = 1;  ///< how many it takes
};
template <class A>
void fields(A& a, PermitRequest& v) {
  a(v.ticket, v.bucket, v.tokens);
}
/// permitted: the wait is over, agent → worker.
struct PermitAnswer {
  std::uint64_t ticket = 0;  ///< of the request; the worker ignores any other
  Code code = Code::ok;      ///< becomes the status of the plugin's permit()
};
template <class A>
void fields(A& a, PermitAnswer& v) {
  a(v.ticket, v.code);
}

}  // namespace driftd::ipc
