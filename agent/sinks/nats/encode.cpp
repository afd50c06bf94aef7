// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/encode.hpp"

#include <algorithm>
#include <cctype>

#include "base/clock.hpp"
#include "base/header_value.hpp"

namespace driftd::sinks {
namespace {

/// Returns the ce-type as the resource-watcher RFC writes it: `topic.config_drift_detected`.
std::string kind_change_type(const core::StoredEvent& event) {
  std::string kind = event.resource.substr(0, event.resource.find('/'));
  if (kind.empty()) kind = event.agent_event ? "agent" : "backend";
  std::string change(core::render(event.type));
  std::transform(change.begin(), change.end(), change.begin(), [](unsigned char c) { return std::tolower(c); });
  return kind + "." + change;
}

}  // namespace

std::vector<NatsMessage> messages_of(const core::StoredEvent& event, const NatsSettings& settings,
                                     const std::string& replay_marker) {
  const std::string id = event.replay ? event.stamp.id + "_r" + replay_marker : event.stamp.id;
  std::vector<NatsMessage> out = {{core::subject_of(event), id}};
  if (!settings.views || event.agent_event) return out;
  if (!event.backend_type.empty()) {
    out.push_back({"backend.type." + core::subject_token(event.backend_type) + "." + event.what, id + "_t"});
  }
  if (!event.source.empty()) {
    out.push_back({"backend.source." + core::subject_token(event.source) + "." + event.what, id + "_s"});
  }
  return out;
}

NatsHeaders headers_of(const core::StoredEvent& event, const NatsSettings& settings) {
  NatsHeaders out = {{"ce-specversion", "1.0"},
                     {"ce-id", event.stamp.id},
                     {"ce-source", core::cloudevent_source(event)},
                     {"ce-type", settings.kind_change_type ? kind_change_type(event) : core::cloudevent_type(event)},
                     {"ce-subject", core::cloudevent_subject(event)},
                     {"ce-time", render_time(event.stamp.recorded_ns)},
                     {"ce-datacontenttype", "application/protobuf"},
                     {"ce-partitionkey", event.key},
                     {"ce-driftseq", std::to_string(event.stamp.sequence)}};
  if (event.stamp.incarnation != 0) out.emplace_back("ce-driftincarnation", std::to_string(event.stamp.incarnation));
  if (event.replay) out.emplace_back("ce-driftreplay", "true");
  for (auto& [name, value] : out) value = header_value(value);
  return out;
}

std::size_t message_bytes(const core::StoredEvent& event, const NatsSettings& settings, const std::string& message_id) {
  auto headers = headers_of(event, settings);
  headers.emplace_back("Nats-Msg-Id", message_id);
  if (settings.jetstream) headers.emplace_back("Nats-Expected-Stream", settings.stream);  // the library sets it
  std::size_t out = std::string_view("NATS/1.0\r\n\r\n").size() + event.payload.size();
  for (const auto& [name, value] : headers) out += name.size() + value.size() + std::string_view(": \r\n").size();
  return out;
}

}  // namespace driftd::sinks
