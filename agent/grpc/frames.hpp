// SPDX-License-Identifier: Apache-2.0
// The messages of a Subscribe stream as bytes of driftd.v1.SubscribeResponse. Stored events are copied, not parsed.
#pragma once

#include <string>

#include "core/event/event.hpp"
#include "grpc/token.hpp"

namespace driftd::rpc {

enum class GapReason { retention = 1, incarnation = 2, unknown_token = 3 };  ///< numbers of StreamGap.Reason
struct Gap {
  GapReason reason = GapReason::retention;
  std::int64_t from = 0, to = 0;  ///< 0: not known
  std::string detail;
};

std::string event_frame(const core::StoredEvent& event, const ResumeToken& token);
std::string position_frame(const ResumeToken& token, std::int64_t newest);
std::string heartbeat_frame(const ResumeToken& token, std::int64_t newest);
std::string gap_frame(const Gap& gap, const ResumeToken& token);

}  // namespace driftd::rpc
