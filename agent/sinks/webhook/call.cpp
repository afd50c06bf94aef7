// SPDX-License-Identifier: Apache-2.0
#include "sinks/webhook/call.hpp"

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/header_value.hpp"
#include "proto/codec.hpp"

namespace driftd::sinks {

Result<Call> structured_call(const core::StoredEvent& event) {
  Call out;
  out.id = event.stamp.id;
  DRIFTD_TRY(out.body, proto::cloudevent_json(event));
  out.headers = {{"Content-Type", "application/cloudevents+json; charset=UTF-8"}};
  return out;
}

Result<Call> binary_call(const core::StoredEvent& event) {
  Call out;
  out.id = event.stamp.id;
  DRIFTD_TRY(out.body, proto::to_json(event));
  out.headers = {{"ce-specversion", "1.0"},
                 {"ce-id", event.stamp.id},
                 {"ce-source", core::cloudevent_source(event)},
                 {"ce-type", core::cloudevent_type(event)},
                 {"ce-subject", core::cloudevent_subject(event)},
                 {"ce-time", render_time(event.stamp.recorded_ns)},
                 {"ce-partitionkey", event.key},
                 {"ce-driftseq", std::to_string(event.stamp.sequence)}};
  if (event.stamp.incarnation != 0) {
    out.headers.emplace_back("ce-driftincarnation", std::to_string(event.stamp.incarnation));
  }
  if (event.replay) out.headers.emplace_back("ce-driftreplay", "true");
  std::erase_if(out.headers, [](const auto& header) { return header.second.empty(); });
  for (auto& [name, value] : out.headers) value = header_value(value);
  out.headers.emplace_back("Content-Type", "application/json");
  return out;
}

Call batch_call(const std::vector<BatchPart>& parts) {
  Call out;
  std::string ids;
  for (const auto& part : parts) {
    ids += part.id + "\n";
    out.body += (out.body.empty() ? "[" : ",") + part.json;
  }
  out.body += "]";
  out.id = parts.size() == 1 ? parts.front().id : "batch-" + to_hex(sha256(ids)).substr(0, 32);
  out.headers = {{"Content-Type", "application/cloudevents-batch+json; charset=UTF-8"}};
  return out;
}

}  // namespace driftd::sinks
