// SPDX-License-Identifier: Apache-2.0
// Messages of the extension calls, like those in messages.hpp.
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

struct DiscoverCall {
  std::int64_t deadline_ns = 0;
};
template <class A>
void fields(A& a, DiscoverCall& v) {
  a(v.deadline_ns);
}
struct DiscoverAnswer {
  std::vector<core::Discovered> backends;
  bool complete = false;
  std::int64_t next_ms = 0;
};
template <class A>
void fields(A& a, DiscoverAnswer& v) {
  a(v.backends, v.complete, v.next_ms);
}

/// The answer is the upgraded body itself.
struct UpgradeCall {
  std::int64_t deadline_ns = 0;
  std::string kind;
  std::uint32_t from_revision = 0;
  std::string body;
};
template <class A>
void fields(A& a, UpgradeCall& v) {
  a(v.deadline_ns, v.kind, v.from_revision, v.body);
}

struct ApplyCall {
  std::int64_t deadline_ns = 0;
  core::ResourceId id;
  std::string expected_version, idempotency_key;
  std::vector<DemoteChange> changes;
  bool dry_run = true;
};
template <class A>
void fields(A& a, ApplyCall& v) {
  a(v.deadline_ns, v.id, v.expected_version, v.idempotency_key, v.changes, v.dry_run);
}
struct ApplyAnswer {
  std::uint32_t outcome = 0;
  bool changed = false;
  std::int64_t requeue_after_ms = 0;
  std::string version, text;
  std::map<std::string, std::string> details;
};
template <class A>
void fields(A& a, ApplyAnswer& v) {
  a(v.outcome, v.changed, v.requeue_after_ms, v.version, v.text, v.details);
}

}  // namespace driftd::ipc
