// SPDX-License-Identifier: Apache-2.0
#include "proto/codec.hpp"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "core/redact.hpp"
#include "driftd/v1/event.pb.h"
#include "proto/serialise.hpp"

namespace driftd::proto {
namespace {

constexpr std::size_t kMaxEventBytes = 64 << 10;  // a larger event is truncated
constexpr std::size_t kMaxKeptValue = 256;        // bytes of a value that a truncated event still contains

v1::ReconciliationPolicy policy_number(core::Action action) {
  switch (action) {
    case core::Action::automatic:
      return v1::RECONCILIATION_POLICY_AUTO;
    case core::Action::manual:
      return v1::RECONCILIATION_POLICY_MANUAL;
    case core::Action::ignore:
      return v1::RECONCILIATION_POLICY_IGNORE;
    case core::Action::enforce:
      return v1::RECONCILIATION_POLICY_ENFORCE;
  }
  return v1::RECONCILIATION_POLICY_UNSPECIFIED;
}

void fill(const core::BackendSnapshot& from, v1::Backend* to) {
  to->set_name(from.name);
  to->set_type(from.type);
  to->set_endpoint(from.endpoint);
  to->mutable_metadata()->insert(from.metadata.begin(), from.metadata.end());
  for (const auto& capability : from.capabilities) to->add_capabilities(capability);
  to->set_config_json(from.config_json);
}

void fill(const core::Change& from, v1::AttributeChange* to) {
  to->set_path(from.path);
  to->set_change_class(std::string(core::render(from.cls)));
  to->set_redacted(from.redacted);
  if (from.old_value) to->set_old_value(from.redacted ? "\"[REDACTED]\"" : core::presentable_json(*from.old_value));
  if (from.new_value) to->set_new_value(from.redacted ? "\"[REDACTED]\"" : core::presentable_json(*from.new_value));
}

/// Replaces the states and the long values of an event that is too large by their SHA-256.
void truncate(v1::BackendChangeEvent& event) {
  event.set_truncated(true);
  const auto shorten = [](v1::Backend& state) {
    state.set_config_json("{\"sha256\":\"" + to_hex(sha256(state.config_json())) + "\"}");
  };
  if (event.has_old_state()) shorten(*event.mutable_old_state());
  if (event.has_new_state()) shorten(*event.mutable_new_state());
  for (auto& change : *event.mutable_changes()) {
    if (change.old_value().size() > kMaxKeptValue)
      change.set_old_value("{\"sha256\":\"" + to_hex(sha256(change.old_value())) + "\"}");
    if (change.new_value().size() > kMaxKeptValue)
      change.set_new_value("{\"sha256\":\"" + to_hex(sha256(change.new_value())) + "\"}");
  }
}

/// For JSON that is made from a message's bytes, whose maps are sorted; those of a message in memory have a random
/// order.
google::protobuf::util::TypeResolver& type_resolver() {
  static const std::unique_ptr<google::protobuf::util::TypeResolver> resolver(
      google::protobuf::util::NewTypeResolverForDescriptorPool("type.googleapis.com",
                                                               google::protobuf::DescriptorPool::generated_pool()));
  return *resolver;
}

}  // namespace

std::string encode(const core::BackendEvent& event, const core::EventStamp& stamp) {
  v1::BackendChangeEvent out;
  out.set_event_id(stamp.id);
  out.set_backend_name(event.backend_name);
  out.set_change_type(static_cast<v1::BackendChangeType>(event.type));
  out.set_source(event.source);
  out.set_timestamp(stamp.recorded_ns / 1'000'000'000);
  if (event.old_state) fill(*event.old_state, out.mutable_old_state());
  if (event.new_state) fill(*event.new_state, out.mutable_new_state());
  for (const auto& field : event.changed_fields) out.add_changed_fields(field);
  if (event.policy) out.set_policy(policy_number(*event.policy));
  out.set_reconciliation_status(event.reconciliation_status);
  out.mutable_metadata()->insert(event.metadata.begin(), event.metadata.end());
  for (const auto& pattern : event.affected_patterns) out.add_affected_patterns(pattern);
  out.set_backend_uid(event.backend_uid);
  out.set_backend_type(event.backend_type);
  if (event.resource) {
    out.set_resource_kind(event.resource->kind);
    out.set_resource_id(event.resource->id);
  }
  if (event.operation) out.set_operation(std::string(core::render(*event.operation)));
  for (const auto& change : event.changes) fill(change, out.add_changes());
  out.set_drift_id(event.drift_id);
  out.set_sequence(stamp.sequence);
  out.set_cause(event.cause);
  out.set_agent(event.agent);
  out.set_cluster(event.cluster);
  out.set_observed_ns(event.observed_ns);
  out.set_recorded_ns(stamp.recorded_ns);
  out.set_what(event.what);
  out.set_provider(event.provider);
  out.set_incarnation(stamp.incarnation);
  if (out.ByteSizeLong() > kMaxEventBytes) truncate(out);
  return serialise(out);
}

std::string encode(const core::AgentEvent& event, const core::EventStamp& stamp) {
  v1::AgentEvent out;
  out.set_event_id(stamp.id);
  out.set_agent(event.agent);
  out.set_cluster(event.cluster);
  out.set_what(event.what);
  out.set_backend_name(event.backend);
  out.set_message(event.message);
  out.mutable_details()->insert(event.details.begin(), event.details.end());
  out.set_timestamp(stamp.recorded_ns / 1'000'000'000);
  out.set_recorded_ns(stamp.recorded_ns);
  out.set_sequence(stamp.sequence);
  out.set_incarnation(stamp.incarnation);
  return serialise(out);
}

core::StoredEvent to_stored_event(const core::BackendEvent& event, const core::EventStamp& stamp) {
  core::StoredEvent out;
  out.stamp = stamp;
  out.resource = event.resource ? core::render(*event.resource) : "";
  out.key = event.backend_uid + "/" + out.resource;
  out.backend = event.backend_name;
  out.backend_type = event.backend_type;
  out.source = event.source;
  out.what = event.what;
  out.cluster = event.cluster;
  out.provider = event.provider;
  out.type = event.type;
  out.payload = encode(event, stamp);
  return out;
}

core::StoredEvent to_stored_event(const core::AgentEvent& event, const core::EventStamp& stamp) {
  core::StoredEvent out;
  out.stamp = stamp;
  out.agent_event = true;
  out.key = "agent/" + event.agent;
  out.backend = event.agent;
  out.source = "driftd";
  out.what = event.what;
  out.cluster = event.cluster;
  out.provider = "agent";
  out.payload = encode(event, stamp);
  return out;
}

Result<std::string> to_json(const core::StoredEvent& event) {
  std::unique_ptr<google::protobuf::Message> message;
  if (event.agent_event) {
    message = std::make_unique<v1::AgentEvent>();
  } else {
    message = std::make_unique<v1::BackendChangeEvent>();
  }
  if (!message->ParseFromString(event.payload)) {
    return fail(Code::corrupt, "event " + event.stamp.id + ": the stored bytes are not a valid event");
  }
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string out;
  const auto status = google::protobuf::util::BinaryToJsonString(
      &type_resolver(), "type.googleapis.com/" + message->GetDescriptor()->full_name(), serialise(*message), &out,
      options);
  if (!status.ok()) return fail(Code::corrupt, "event " + event.stamp.id + ": " + status.ToString());
  return out;
}

Result<std::string> cloudevent_json(const core::StoredEvent& event) {
  DRIFTD_TRY(const std::string data, to_json(event));
  nlohmann::ordered_json out;
  out["specversion"] = "1.0";
  out["id"] = event.stamp.id;
  out["source"] = core::cloudevent_source(event);
  out["type"] = core::cloudevent_type(event);
  out["subject"] = core::cloudevent_subject(event);
  out["time"] = render_time(event.stamp.recorded_ns);
  out["datacontenttype"] = "application/json";
  out["partitionkey"] = event.key;
  out["driftseq"] = std::to_string(event.stamp.sequence);
  if (event.stamp.incarnation != 0) out["driftincarnation"] = std::to_string(event.stamp.incarnation);
  if (event.replay) out["driftreplay"] = "true";
  std::string text = out.dump();
  text.back() = ',';
  return text + "\"data\":" + data + "}";
}

}  // namespace driftd::proto
