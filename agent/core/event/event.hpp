// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "core/drift.hpp"

namespace driftd::core {

enum class ChangeType {  ///< numbers of the RFC's BackendChangeType
  unspecified = 0,
  created,
  updated,
  deleted,
  credential_rotated,
  health_changed,
  endpoint_changed,
  config_drift_detected
};
std::string_view render(ChangeType type);  ///< `CREDENTIAL_ROTATED` ...

/// The registry entry as events carry it in old_state and new_state. config_json is redacted canonical JSON.
struct BackendSnapshot {
  std::string name, type, endpoint, config_json;
  std::map<std::string, std::string> metadata;
  std::vector<std::string> capabilities;
};

/// What happened to a backend, before the commit gives it id, sequence and recorded time.
struct BackendEvent {
  std::string backend_uid, backend_name, backend_type;
  std::string provider;
  ChangeType type = ChangeType::unspecified;
  std::string what;    ///< subject after `backend.<name>.`: `credentials.rotated`, `config.updated`, `drift.decided`
  std::string source;  ///< coarse: kubernetes | terraform | manual | health-check | provider name
  std::optional<BackendSnapshot> old_state, new_state;
  std::vector<std::string> changed_fields;
  std::optional<Action> policy;
  std::string reconciliation_status;
  std::map<std::string, std::string> metadata;
  std::vector<std::string> affected_patterns;
  std::optional<ResourceId> resource;
  std::optional<Operation> operation;
  std::vector<Change> changes;  ///< redacted values are digests here; the encoder writes "[REDACTED]" for them
  std::string drift_id, cause, agent, cluster;
  Nanos observed_ns = 0;
};

/// An event about the agent itself.
struct AgentEvent {
  std::string agent, cluster;
  std::string what;     ///< gap | dead_letter | parked | budget | corrupt | secret_denied | upgrade_refused |
                        ///< upgrade_reverted | plugin_refused | program_failed | secret_file_failed | incarnation |
                        ///< key_rotated | notification | escalation | audit_anchor
  std::string backend;  ///< empty if it is about no backend
  std::string message;
  std::map<std::string, std::string> details;
  Nanos at_ns = 0;
};

/// What the commit assigns to an event. It never changes afterwards.
struct EventStamp {
  std::string id;              ///< `<resource hash>-<hybrid logical clock>`
  std::int64_t seq = 0;        ///< the store's order of events (outbox order)
  std::uint64_t sequence = 0;  ///< per backend, without gaps within an incarnation
  Nanos recorded_ns = 0;
  /// Number of the store that rises when the store lost commits or is a copy, so that a consumer never sees
  /// (incarnation, sequence) go back. 0 for an event from before stores had incarnations.
  std::uint64_t incarnation = 0;
};

/// An event as the outbox stores it: immutable bytes and what sinks need to address it.
struct StoredEvent {
  EventStamp stamp;
  bool agent_event = false;
  std::string key;  ///< order key: backend uid + resource. One event per key and sink is in flight
  std::string backend, backend_type, source, what, cluster, provider;
  std::string resource;  ///< `kind/id` or empty
  ChangeType type = ChangeType::unspecified;
  std::string payload;  ///< protobuf bytes: BackendChangeEvent or AgentEvent
  bool replay = false;  ///< `driftd replay` sends it again
  int refusals = 0;     ///< how often the receiver refused its content before (Attempt::content_refused)
};

/// Returns the subject of an event: `backend.<name>.<what>` or `driftd.agent.<name>.<what>`.
std::string subject_of(const StoredEvent& event);
/// Returns `name` as one token of a subject: bytes other than [A-Za-z0-9_-] as `=XX`.
std::string subject_token(std::string_view name);
/// Returns true for `type` and `source`: as backend names they would collide with the subjects `backend.type.…` and
/// `backend.source.…`, so subject_of() escapes their first letter.
bool is_reserved_name(std::string_view name);
/// Returns why `name` is not valid for a backend, sink or agent. Empty if it is valid.
std::string invalid_name_reason(std::string_view name);
/// CloudEvents: `//<cluster>/driftd/<provider>`, `io.driftd.backend.<what>.v1`, `<backend>[/<kind>/<id>]`.
std::string cloudevent_source(const StoredEvent& event);
std::string cloudevent_type(const StoredEvent& event);
std::string cloudevent_subject(const StoredEvent& event);

struct Transition;
struct StoredResource;
/// What an event says besides the transition or the change that it is about.
struct EventContext {
  std::string backend_uid, provider, agent, cluster;
  /// why a registration changed. If it begins with `discovered`, the event's source is the provider, else it is
  /// `manual`
  std::string cause;
  BackendSnapshot backend;
  std::vector<std::string> patterns;
};
/// Returns the event of a drift's transition (semantics, table "what happened").
BackendEvent drift_event(const Transition& transition, const StoredResource& before, const StoredResource& after,
                         const EventContext& context);
/// Returns a registration event: CREATED, UPDATED or DELETED.
BackendEvent registration_event(ChangeType type, const EventContext& context, std::optional<BackendSnapshot> before,
                                std::vector<std::string> changed_fields, Nanos at_ns);
/// Returns the event of a change of the backend's health.
BackendEvent health_event(const EventContext& context, HealthReport::State before, const HealthReport& now,
                          Nanos at_ns);

/// A route chooses events and the sinks that get them. Every matching route adds its sinks.
struct Route {
  std::vector<std::string> change;   ///< `what` globs (`credentials.rotated`, `agent.*`); empty: all
  std::vector<std::string> backend;  ///< name globs; empty: all
  std::vector<std::string> kind;     ///< resource kind globs; empty: all
  std::map<std::string, std::string> labels;
  std::vector<std::string> to;  ///< sink names
};
/// Returns the sinks of all routes that match an event, sorted and without duplicates. `what` of an agent event is
/// `agent.<what>`.
std::vector<std::string> resolve_routes(const std::vector<Route>& routes, const std::string& what,
                                        const std::string& backend, const std::optional<ResourceId>& resource,
                                        const std::map<std::string, std::string>& labels);

}  // namespace driftd::core
