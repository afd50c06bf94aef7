// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/event/event.hpp"

namespace driftd::sinks {

/// What one request carries: its `webhook-id`, its body, and the headers that belong to the body.
struct Call {
  std::string id, body;
  std::vector<std::pair<std::string, std::string>> headers;
};

/// One event of a batch: its id and its structured JSON.
struct BatchPart {
  std::string id, json;
};

/// The CloudEvents HTTP binding in its structured mode. `corrupt` if the payload is not an event.
Result<Call> structured_call(const core::StoredEvent& event);
/// The same in its binary mode: attributes as `ce-` headers, the data as JSON.
Result<Call> binary_call(const core::StoredEvent& event);
/// The same in its batched mode. Needs at least one part. The id is that of the event if there is only one, else
/// `batch-` and the first 32 hex digits of the SHA-256 of all ids, each followed by a newline: the same events in the
/// same order give the same id.
Call batch_call(const std::vector<BatchPart>& parts);
/// Returns the number of bytes that a part adds to a batch.
inline std::size_t bytes_in_batch(const BatchPart& part) { return part.json.size() + 1; }

}  // namespace driftd::sinks
