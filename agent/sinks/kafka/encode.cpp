// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/encode.hpp"

#include "base/clock.hpp"
#include "proto/codec.hpp"

namespace driftd::sinks {
namespace {

constexpr const char* kProtobuf = "application/protobuf";
constexpr const char* kStructured = "application/cloudevents+json; charset=UTF-8";

}  // namespace

Result<KafkaRecord> record_of(const core::StoredEvent& event, const KafkaSettings& settings) {
  KafkaRecord out;
  out.key = event.key;
  if (settings.json) {
    DRIFTD_TRY(out.value, proto::cloudevent_json(event));
  } else {
    out.value = event.payload;
  }
  out.headers = {{"content-type", settings.json ? kStructured : kProtobuf},
                 {"ce_specversion", "1.0"},
                 {kIdHeader, event.stamp.id},
                 {"ce_source", core::cloudevent_source(event)},
                 {"ce_type", core::cloudevent_type(event)},
                 {"ce_subject", core::cloudevent_subject(event)},
                 {"ce_time", render_time(event.stamp.recorded_ns)},
                 {"ce_partitionkey", event.key},
                 {"ce_driftseq", std::to_string(event.stamp.sequence)}};
  if (event.stamp.incarnation != 0)
    out.headers.emplace_back("ce_driftincarnation", std::to_string(event.stamp.incarnation));
  if (event.replay) out.headers.emplace_back("ce_driftreplay", "true");
  return out;
}

}  // namespace driftd::sinks
