// SPDX-License-Identifier: Apache-2.0
#include "sinks/plugin/encode.hpp"

#include "proto/codec.hpp"

namespace driftd::sinks {

Result<core::PluginEvent> plugin_event(const core::StoredEvent& event, const std::string& content_type) {
  core::PluginEvent out;
  out.id = event.stamp.id;
  out.source = core::cloudevent_source(event);
  out.type = core::cloudevent_type(event);
  out.subject = core::cloudevent_subject(event);
  out.topic = core::subject_of(event);
  out.order_key = event.key;
  out.sequence = event.stamp.sequence;
  out.incarnation = event.stamp.incarnation;
  out.time_ns = event.stamp.recorded_ns;
  out.replay = event.replay;
  out.agent_event = event.agent_event;
  out.content_type = content_type;
  if (content_type == core::kCloudEventsJson) {
    DRIFTD_TRY(out.body, proto::cloudevent_json(event));
  } else {
    out.body = event.payload;
  }
  const std::pair<const char*, const std::string&> known[] = {
      {"cluster", event.cluster},  {"provider", event.provider},  {"backend", event.backend},
      {"change", event.what},      {"detected_by", event.source}, {"backend_type", event.backend_type},
      {"resource", event.resource}};
  for (const auto& [name, value] : known) {
    if (!value.empty()) out.attributes.emplace(name, value);
  }
  return out;
}

}  // namespace driftd::sinks
