// SPDX-License-Identifier: Apache-2.0
// Messages of the extension calls (driftd.discover, driftd.upgrade, driftd.apply), like those in messages.hpp. Texts
// that come from the plugin were cut and scrubbed by the worker; the agent does it again, because it trusts no worker.
#pragma once

#include "core/extension.hpp"
#include "ipc/messages.hpp"

namespace driftd::core {

template <class A>
void fields(A& a, Discovered& v) {
  a(v.name, v.type, v.external, v.version, v.config, v.origin, v.revision, v.endpoints, v.capabilities, v.credentials,
    v.labels, v.metadata, v.observed_ns);
}

}  // namespace driftd::core

namespace driftd::ipc {

/// discover: asks for all backends that the instance knows of. Answered by DiscoverAnswer.
struct DiscoverCall {
  std::int64_t deadline_ns = 0;  ///< CLOCK_MONOTONIC, as everywhere below
};
template <class A>
void fields(A& a, DiscoverCall& v) {
  a(v.deadline_ns);
}
/// What a discovery found. Diagnostics of the call are frames of their own.
struct DiscoverAnswer {
  std::vector<core::Discovered> backends;  ///< in the plugin's order; at most 4096 and 6 MiB
  bool complete = false;                   ///< every backend is here: a missing one may count as gone
  std::int64_t next_ms = 0;                ///< as the plugin asks for it; 0: the agent decides
};
template <class A>
void fields(A& a, DiscoverAnswer& v) {
  a(v.backends, v.complete, v.next_ms);
}

/// upgrade: a stored body of an older schema revision, to be brought into the form of the current one. The answer is
/// the upgraded body itself: canonical JSON, an object.
struct UpgradeCall {
  std::int64_t deadline_ns = 0;
  std::string kind;
  std::uint32_t from_revision = 0;  ///< of the kind's schema when the body was stored
  std::string body;                 ///< JSON as stored; a sensitive value is a digest
};
template <class A>
void fields(A& a, UpgradeCall& v) {
  a(v.deadline_ns, v.kind, v.from_revision, v.body);
}

/// apply: known values to put back. Answered by ApplyAnswer. The worker answers `invalid` without a change, without a
/// key, above a limit, and for a value that is or holds the digest of a secret.
struct ApplyCall {
  std::int64_t deadline_ns = 0;
  core::ResourceId id;
  std::string expected_version;       ///< version that was judged; empty: the system has none
  std::string idempotency_key;        ///< 1 to 128 bytes; the same key again is the same change
  std::vector<DemoteChange> changes;  ///< old_value: as found now; new_value: to put back. Never a credential
  bool dry_run = true;                ///< change nothing and answer as the real call would
};
template <class A>
void fields(A& a, ApplyCall& v) {
  a(v.deadline_ns, v.id, v.expected_version, v.idempotency_key, v.changes, v.dry_run);
}
/// What came of an apply, after the worker checked that it is one that the ABI allows.
struct ApplyAnswer {
  std::uint32_t outcome = 0;                      ///< DRIFTD_APPLY_*, 1 to 4
  bool changed = false;                           ///< the system was changed; never in a dry run
  std::int64_t requeue_after_ms = 0;              ///< at least 1 for REQUEUE_AFTER
  std::string version, text;                      ///< version afterwards, empty: unknown; why, empty only for SUCCESS
  std::vector<std::string> commands, undo, left;  ///< as in core::ApplyOutcome
  std::map<std::string, std::string> details;     ///< for the audit log
};
template <class A>
void fields(A& a, ApplyAnswer& v) {
  a(v.outcome, v.changed, v.requeue_after_ms, v.version, v.text, v.commands, v.undo, v.left, v.details);
}

}  // namespace driftd::ipc
