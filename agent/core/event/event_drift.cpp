// SPDX-License-Identifier: Apache-2.0
// Events from transitions, registrations and health (semantics, table "what happened").
#include <algorithm>
#include <utility>

#include "core/event/event.hpp"
#include "core/judge/stages.hpp"
#include "core/presentable_text.hpp"
#include "core/redact.hpp"
#include "core/scope.hpp"

namespace driftd::core {
namespace {

/// Type and subject of an event.
struct Address {
  ChangeType type;
  const char* what;
};

Address address_of_class(ChangeClass cls) {
  switch (cls) {
    case ChangeClass::credential:
      return {ChangeType::credential_rotated, "credentials.rotated"};
    case ChangeClass::endpoint:
      return {ChangeType::endpoint_changed, "endpoint.changed"};
    case ChangeClass::health:
      return {ChangeType::health_changed, "health.changed"};
    case ChangeClass::config:
      break;
  }
  return {ChangeType::config_drift_detected, "config.updated"};
}

Address address_of(const Transition& transition) {
  constexpr Address kDecided{ChangeType::unspecified, "drift.decided"};
  const Drift& drift = transition.drift;
  const Address own = address_of_class(drift.cls);
  if (transition.moved) return own;
  switch (drift.status) {
    case DriftStatus::pending:
    case DriftStatus::ignored:
      return transition.from ? kDecided : own;  // undone or ignored by a person; or opened
    case DriftStatus::reverted:
    case DriftStatus::enforced:
      return own;
    case DriftStatus::auto_applied:
    case DriftStatus::approved:
      if (drift.cls == ChangeClass::config) return {ChangeType::updated, own.what};
      return drift.status == DriftStatus::auto_applied || !transition.from ? own : kDecided;
    case DriftStatus::rejected:
    case DriftStatus::superseded:
    case DriftStatus::retired:
      break;
  }
  return kDecided;
}

/// Returns true if a person's decision caused the transition, not the system.
bool by_person(const Transition& transition) {
  const DriftStatus status = transition.drift.status;
  const bool is_decision = status == DriftStatus::approved || status == DriftStatus::rejected ||
                           status == DriftStatus::ignored || status == DriftStatus::pending ||
                           status == DriftStatus::retired;
  return is_decision && !transition.moved && !transition.drift.actor.empty();
}

/// Returns the coarse source: kubernetes, terraform, or the provider's name.
std::string source_of(const std::string& origin, const std::string& provider) {
  if (origin.starts_with("kubernetes") || provider == "k8s") return "kubernetes";
  if (origin.starts_with("terraform")) return "terraform";
  return provider;
}

/// Adds `"name":value` to the text of an object that is being written.
void append_member(std::string& out, std::string_view name, std::string_view value) {
  out.push_back(out.empty() ? '{' : ',');
  out.append(render(Value(std::string(name)))).append(":").append(value);
}

/// The resource as a member of a config: its stored body is canonical JSON already, so it is not parsed and rendered
/// again.
std::string resource_text(const ResourceId& id, const std::string& body, const std::string& external_name) {
  std::string out;
  out.reserve(body.size() + external_name.size() + id.kind.size() + id.id.size() + 64);
  append_member(out, "body", presentable_text(body));
  if (!external_name.empty()) append_member(out, "external_name", render(Value(external_name)));
  append_member(out, "id", render(Value(id.id)));
  append_member(out, "kind", render(Value(id.kind)));
  return out + "}";
}

/// Returns the registry entry with the resource as the member `resource` of its config, redacted.
BackendSnapshot with_resource(BackendSnapshot entry, const ResourceId& id, const std::optional<std::string>& body,
                              const std::string& external_name) {
  constexpr std::string_view kResource = "resource";
  const Result<Value> registration = parse(entry.config_json.empty() ? "{}" : entry.config_json);
  Value::Object config;
  if (registration && registration->object()) config = *registration->object();
  if (!body) {
    entry.config_json = presentable(Value(std::move(config)));
    return entry;
  }
  config.insert_or_assign(std::string(kResource), Value{});
  std::string out;
  for (const auto& [name, member] : config)
    append_member(out, name, name == kResource ? resource_text(id, *body, external_name) : presentable(member));
  entry.config_json = out + "}";
  return entry;
}

/// Withholds in the old body what is withheld in the current one: an earlier version of the agent may have stored it in
/// clear text.
void withhold_like(const Value& now, Value& former) {
  if (as_digest(now)) {
    if (!former.is_null()) former = Value(std::string("[REDACTED]"));
    return;
  }
  if (auto* members = former.object()) {
    for (auto& [name, member] : *members) {
      if (const Value* same = now.find(name)) withhold_like(*same, member);
    }
  }
  auto* elements = former.array();
  const auto* same = now.array();
  for (std::size_t i = 0; elements != nullptr && same != nullptr && i < std::min(elements->size(), same->size()); ++i) {
    withhold_like((*same)[i], (*elements)[i]);
  }
}

std::optional<std::string> withheld_like(const std::optional<std::string>& now,
                                         const std::optional<std::string>& former) {
  if (!now || !former || now->find("$hmac") == std::string::npos) return former;
  const Result<Value> like = parse(*now);
  Result<Value> out = parse(*former);
  if (!like || !out) return former;
  withhold_like(*like, *out);
  return render(*out);
}

/// Returns the body that an expectation requires: the observed body with the expected values in it.
std::optional<std::string> expected_body(const std::optional<std::string>& observed,
                                         const std::vector<Change>& changes) {
  const Result<Value> body = parse(observed.value_or("{}"));
  if (!body) return observed;
  Value out = *body;
  for (const auto& change : changes) {
    const Result<Value> value = change.old_value ? parse(*change.old_value) : Result<Value>(Value{});
    if (value) (void)assign(out, attribute_path(change.path), change.old_value ? &*value : nullptr);
  }
  return render(out);
}

void put_states(BackendEvent& event, const Drift& drift, const StoredResource& before, const StoredResource& after,
                const EventContext& context) {
  const bool back = drift.status == DriftStatus::reverted || drift.status == DriftStatus::enforced;
  std::optional<std::string> old_body = before.baseline;
  std::string old_name = before.external_name;
  if (back) {
    old_body = before.observed;
    old_name = before.observed_external_name;
  } else if (drift.against == Against::expectation) {
    old_body = expected_body(after.observed, drift.changes);
    old_name = after.observed_external_name;
  }
  event.old_state = with_resource(context.backend, before.id, withheld_like(after.observed, old_body), old_name);
  event.new_state = with_resource(context.backend, after.id, after.observed, after.observed_external_name);
}

void put_metadata(BackendEvent& event, const Drift& drift, const StoredResource& row) {
  event.metadata = row.metadata;
  if (!row.origin.empty()) event.metadata["origin"] = row.origin;
  if (!row.version.empty()) event.metadata.emplace("version", row.version);
  event.metadata["against"] = std::string(render(drift.against));
  if (!drift.actor.empty()) event.metadata["actor"] = drift.actor;
  if (!drift.reason.empty()) event.metadata["reason"] = drift.reason;
}

BackendEvent base_event(const EventContext& context, Address address, Nanos at_ns) {
  BackendEvent event;
  event.backend_uid = context.backend_uid;
  event.backend_name = context.backend.name;
  event.backend_type = context.backend.type;
  event.provider = context.provider;
  event.type = address.type;
  event.what = address.what;
  event.affected_patterns = context.patterns;
  event.cause = context.cause;
  event.agent = context.agent;
  event.cluster = context.cluster;
  event.observed_ns = at_ns;
  return event;
}

BackendSnapshot redacted(BackendSnapshot entry) {
  if (!entry.config_json.empty()) entry.config_json = presentable_json(entry.config_json);
  return entry;
}

/// Returns the name of a changed field. Fields of a registration have the RFC's names only, also if a source reported
/// them.
std::string field_of(const ResourceId& resource, const std::string& path) {
  if (resource.kind == kRegistration && path != kIdentityPath) return path;
  return path == kIdentityPath ? render(resource) : render(resource) + ":" + path;
}

}  // namespace

BackendEvent drift_event(const Transition& transition, const StoredResource& before, const StoredResource& after,
                         const EventContext& context) {
  const Drift& drift = transition.drift;
  BackendEvent event = base_event(context, address_of(transition), after.observed_ns);
  event.source = by_person(transition) ? "manual" : source_of(after.origin, context.provider);
  for (const auto& change : transition.changes) event.changed_fields.push_back(field_of(drift.resource, change.path));
  event.policy = drift.action;
  event.reconciliation_status = std::string(render(drift.status));
  event.resource = drift.resource;
  event.operation = drift.operation;
  event.changes = transition.changes;
  event.drift_id = drift.id;
  put_metadata(event, drift, after);
  put_states(event, drift, before, after, context);
  return event;
}

BackendEvent registration_event(ChangeType type, const EventContext& context, std::optional<BackendSnapshot> before,
                                std::vector<std::string> changed_fields, Nanos at_ns) {
  const char* what = type == ChangeType::created ? "created" : type == ChangeType::deleted ? "deleted" : "updated";
  BackendEvent event = base_event(context, {type, what}, at_ns);
  event.source = context.cause.starts_with("discovered") ? source_of({}, context.provider) : "manual";
  event.changed_fields = std::move(changed_fields);
  if (before) event.old_state = redacted(std::move(*before));
  if (type == ChangeType::deleted) {
    if (!event.old_state) event.old_state = redacted(context.backend);
  } else {
    event.new_state = redacted(context.backend);
  }
  return event;
}

BackendEvent health_event(const EventContext& context, HealthReport::State before, const HealthReport& now,
                          Nanos at_ns) {
  BackendEvent event = base_event(context, address_of_class(ChangeClass::health), at_ns);
  const std::string old_health(render(before)), new_health(render(now.state));
  event.source = "health-check";
  event.resource = ResourceId{"backend", context.backend.name};
  event.operation = Operation::changed;
  event.changes = {{"health", ChangeClass::health, render(Value(old_health)), render(Value(new_health)), false}};
  event.changed_fields = {"health"};
  event.old_state = redacted(context.backend);
  event.old_state->metadata["health"] = old_health;
  event.new_state = redacted(context.backend);
  event.new_state->metadata["health"] = new_health;
  event.metadata["latency_us"] = std::to_string(now.latency_us);
  for (const auto& [name, value] :
       {std::pair{"reason", &now.reason}, std::pair{"role", &now.role},
        std::pair{"system_identity", &now.system_identity}, std::pair{"server_version", &now.server_version}}) {
    if (!value->empty()) event.metadata[name] = *value;
  }
  return event;
}

}  // namespace driftd::core
