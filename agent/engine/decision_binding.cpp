// SPDX-License-Identifier: Apache-2.0
#include "engine/decision_binding.hpp"

#include <algorithm>

#include "base/digest.hpp"

namespace driftd::engine {
namespace {

using Verb = core::Decision::Verb;

constexpr std::size_t kMinBinding = 8;  // characters: 32 bits of a keyed hash
constexpr std::size_t kBinding = 64;
constexpr const char* kOtherValue = "another value";  // no digest is equal to it

const core::Drift* find_open(const core::StoredResource& stored, const std::string& id) {
  const auto found =
      std::find_if(stored.open.begin(), stored.open.end(), [&](const auto& drift) { return drift.id == id; });
  return found == stored.open.end() ? nullptr : &*found;
}

bool well_formed(std::string_view text) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() >= kMinBinding && text.size() <= kBinding && std::all_of(text.begin(), text.end(), is_hex);
}

/// Compares in constant time, so that timing reveals nothing about the binding.
bool begins(const std::string& binding, const std::string& given) {
  unsigned different = 0;
  for (std::size_t i = 0; i < given.size(); ++i) different |= static_cast<unsigned char>(binding[i] ^ given[i]);
  return different == 0;
}

Status check_form(const std::string& digest, const std::string& drift_id) {
  if (well_formed(digest)) return {};
  return fail(Code::invalid,
              "digest '" + digest + "' of the decision about drift " + drift_id +
                  " must be at least 8 lower-case hex characters, as `driftd drifts` prints them behind the @");
}

/// Returns the verb that leads to a status.
std::string decision_verb(core::DriftStatus status) {
  return status == core::DriftStatus::rejected ? "reject" : status == core::DriftStatus::ignored ? "ignore" : "approve";
}

/// Returns the verb of an audit line. `from` is the drift's status before the decision.
std::string verb_of(const core::Drift& drift, core::DriftStatus from, const core::Decision& decision) {
  const std::string of = std::to_string(drift.approvals_needed);
  const std::string given = std::to_string(core::approvals_given(drift, decision.at_ns));
  if (decision.verb == Verb::approve && drift.status == core::DriftStatus::pending) {
    return "approved " + given + " of " + of;
  }
  if (decision.verb == Verb::undo && from == core::DriftStatus::pending) return "undid one approval of " + of;
  return decision.verb == Verb::undo ? "undid " + decision_verb(from) : std::string(render(drift.status));
}

/// Empty if no approval of the drift ran out.
std::optional<core::AuditEntry> approval_expiry_entry(const core::RedactionKey& store_key, const core::Drift& drift,
                                                      const std::string& backend, Nanos now_ns) {
  const auto found = std::find_if(drift.approvals.begin(), drift.approvals.end(), [&](const core::Approval& one) {
    return one.expires_ns && *one.expires_ns <= now_ns;
  });
  if (found == drift.approvals.end()) return std::nullopt;
  core::AuditEntry out = core::make_audit_entry(drift, backend);
  out.digest = decision_binding(store_key, drift);
  out.at_ns = now_ns;
  out.actor = "driftd";
  out.verb = "expired one approval of " + std::to_string(drift.approvals_needed);
  out.reason = "approved by " + found->actor + " until " + render_time(*found->expires_ns);
  return out;
}

}  // namespace

std::string decision_binding(const core::RedactionKey& store_key, const core::Drift& drift) {
  return hmac_hex(store_key.newest(), {"driftd decision 1", drift.id, drift.digest});
}

Result<core::Decision> resolve_binding(const core::RedactionKey& store_key, const core::StoredResource& stored,
                                       const std::string& drift_id, core::Decision decision) {
  if (!decision.digest) return decision;
  DRIFTD_CHECK(check_form(*decision.digest, drift_id));
  const core::Drift* drift = find_open(stored, drift_id);
  if (drift == nullptr) return decision;  // core::decide reports what happened to it
  return resolve_binding(store_key, *drift, std::move(decision));
}

Result<core::Decision> resolve_binding(const core::RedactionKey& store_key, const core::Drift& drift,
                                       core::Decision decision) {
  if (!decision.digest) return decision;
  DRIFTD_CHECK(check_form(*decision.digest, drift.id));
  decision.digest = begins(decision_binding(store_key, drift), *decision.digest) ? drift.digest : kOtherValue;
  return decision;
}

core::AuditEntry claim_entry(const core::RedactionKey& store_key, const core::Drift& drift, const core::Claim& claim,
                             const std::string& backend) {
  core::AuditEntry out = core::make_audit_entry(drift, backend);
  out.digest = decision_binding(store_key, drift);
  out.at_ns = claim.at_ns;
  out.actor = claim.actor;
  out.caller = claim.caller;
  out.verb = claim.until_ns ? "claimed" : "released";
  out.reason = claim.reason;
  out.expires_ns = claim.until_ns;
  return out;
}

core::AuditEntry decision_entry(const core::RedactionKey& store_key, const core::Drift& drift, core::DriftStatus from,
                                const core::Decision& decision, const std::string& backend) {
  core::AuditEntry out = core::make_audit_entry(drift, backend);
  out.digest = decision_binding(store_key, drift);
  out.at_ns = decision.at_ns;
  out.actor = decision.actor;
  out.caller = decision.caller;
  out.verb = verb_of(drift, from, decision);
  out.reason = decision.reason;
  out.expires_ns = decision.expires_ns;
  return out;
}

core::AuditEntry enforcement_entry(const core::RedactionKey& store_key, const core::Enforcement& operation) {
  core::Drift drift;
  drift.id = operation.drift_id;
  drift.digest = operation.digest;
  drift.resource = operation.resource;
  drift.changes = operation.changes;
  core::AuditEntry out = core::make_audit_entry(drift, operation.backend);
  out.digest = decision_binding(store_key, drift);
  out.at_ns = operation.updated_ns;
  out.actor = operation.actor;
  out.verb = "enforce " + std::string(core::render(operation.state));
  out.reason = operation.id + (operation.text.empty() ? "" : ": " + operation.text);
  return out;
}

std::optional<core::AuditEntry> expiry_entry(const core::RedactionKey& store_key, const core::StoredResource& before,
                                             const core::Transition& transition, const std::string& backend,
                                             Nanos now_ns) {
  const core::Drift* old = find_open(before, transition.drift.id);
  if (old != nullptr && !old->decided_ns && transition.drift.status == core::DriftStatus::pending) {
    return approval_expiry_entry(store_key, *old, backend, now_ns);
  }
  const bool ran_out = old != nullptr && old->decided_ns && old->expires_ns && *old->expires_ns <= now_ns;
  if (!ran_out || transition.drift.decided_ns == old->decided_ns) return std::nullopt;
  core::AuditEntry out = core::make_audit_entry(*old, backend);
  out.digest = decision_binding(store_key, *old);
  out.at_ns = now_ns;
  out.actor = "driftd";
  out.verb = "expired " + decision_verb(old->status);
  out.reason = "decided by " + old->actor + " until " + render_time(*old->expires_ns);
  return out;
}

}  // namespace driftd::engine
