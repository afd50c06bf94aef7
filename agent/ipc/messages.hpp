// SPDX-License-Identifier: Apache-2.0
// The payloads of the frames in wire.hpp. `fields` lists the members of a struct once, for writing and for reading, in
// the order of the wire. A call begins with its deadline, which the worker reads first (but `open` and `demote`).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/ports/session.hpp"
#include "ipc/side_messages.hpp"
#include "ipc/wire_fields.hpp"

namespace driftd {

/// Returns the highest number of each enum on the wire: higher ones are not decoded.
constexpr Code last_of(Code) { return Code::internal; }

}  // namespace driftd

namespace driftd::core {

constexpr Mark::Type last_of(Mark::Type) { return Mark::Type::bookmark; }
constexpr HealthReport::State last_of(HealthReport::State) { return HealthReport::State::down; }

template <class A>
void fields(A& a, ResourceId& v) {
  a(v.kind, v.id);
}
template <class A>
void fields(A& a, Unread& v) {
  a(v.path, v.code, v.reason);
}
template <class A>
void fields(A& a, Mark& v) {
  a(v.type, v.kind, v.cursor, v.count, v.backend);
}
template <class A>
void fields(A& a, Diagnostic& v) {
  a(v.code, v.kind, v.id, v.path, v.text, v.right, v.retry_after_ms, v.backend);
}
template <class A>
void fields(A& a, HealthReport& v) {
  a(v.state, v.latency_us, v.reason, v.role, v.system_identity, v.server_version);
}
template <class A>
void fields(A& a, Observation& v) {
  a(v.id, v.backend, v.body, v.status, v.version, v.external_name, v.origin, v.unread, v.metadata, v.observed_ns,
    v.schema_revision, v.tombstone, v.digest_only, v.digest.low, v.digest.high);
}
template <class A>
void fields(A& a, Demotion& v) {
  a(v.index, v.unsettled, v.reason);
}
template <class A>
void fields(A& a, Extension& v) {
  a(v.id, v.revision);
}
template <class A>
void fields(A& a, RedactRule& v) {
  a(v.show, v.path);
}

}  // namespace driftd::core

namespace driftd::ipc {

/// load: which plugin to load. The result carries a LoadAnswer.
struct Load {
  std::string file;                     ///< for people: the bytes arrive as a descriptor
  bool in_process = false;              ///< in the agent itself: without a jail and without a guard of the process
  std::vector<std::string> read_paths;  ///< paths of the settings that the jail leaves readable
  bool unix_sockets = false, jail_kills = false;  ///< the jail allows AF_UNIX; a denied system call ends the process
};
template <class A>
void fields(A& a, Load& v) {
  a(v.file, v.in_process, v.read_paths, v.unix_sockets, v.jail_kills);
}

/// What a plugin says of itself, as text; both sides read it with provider_info.hpp.
struct LoadAnswer {
  std::string file, describe, settings_schema;  ///< path, for people; two JSON documents of at most kMaxDocument
  std::map<std::string, std::string> kinds;     ///< kind → driftd-schema/1 document
  std::string jail;                             ///< the worker's jail: `landlock 7, seccomp`; empty: in-process
  std::vector<core::Extension> extensions;      ///< adopted by this host
  bool sink = false;                            ///< it is a sink plugin; `kinds` is empty then
};
template <class A>
void fields(A& a, LoadAnswer& v) {
  a(v.file, v.describe, v.settings_schema, v.kinds, v.jail, v.extensions, v.sink);
}

/// open: opens one instance. Secrets stay in the worker's memory.
struct Open {
  std::string backend, settings_json;          ///< name for log lines; settings whose sensitive values are tokens
  std::map<std::string, std::string> secrets;  ///< token → bytes
  std::string key_id, key;                     ///< the key with which the worker redacts
  std::uint64_t digest_seed = 0, max_records = 0, max_bytes = 0;  ///< seed of XXH3; budgets of one refresh
  std::int64_t deadline_ns = 0;                                   ///< CLOCK_MONOTONIC, as everywhere below
  std::vector<core::RedactRule> redact;                           ///< the rules of the config, in order
};
template <class A>
void fields(A& a, Open& v) {
  a(v.backend, v.settings_json, v.secrets, v.key_id, v.key, v.digest_seed, v.max_records, v.max_bytes, v.deadline_ns,
    v.redact);
}

struct RefreshCall {
  std::int64_t deadline_ns = 0;
  bool full = false;               ///< list everything, without shortcuts
  std::string cursor;              ///< of the last stored checkpoint; empty: from the start
  std::vector<std::string> kinds;  ///< empty: all that the settings include
  bool digests = false;  ///< records that were sent before may come as their digests, but for those in `whole`
  std::vector<core::ResourceId> whole;
};
template <class A>
void fields(A& a, RefreshCall& v) {
  a(v.deadline_ns, v.full, v.cursor, v.kinds, v.digests, v.whole);
}

struct ReadCall {
  std::int64_t deadline_ns = 0;
  std::vector<core::ResourceId> ids;  ///< never a stand-in, which the provider does not know
};
template <class A>
void fields(A& a, ReadCall& v) {
  a(v.deadline_ns, v.ids);
}

/// For health and watch.
struct PlainCall {
  std::int64_t deadline_ns = 0;  ///< of a watch: the maximum
  std::string cursor;            ///< watch only; empty: from now
};
template <class A>
void fields(A& a, PlainCall& v) {
  a(v.deadline_ns, v.cursor);
}

struct DemoteChange {
  std::uint32_t index = 0;                 ///< which change of the caller's list it is
  std::string path, old_value, new_value;  ///< attribute path; JSON texts, empty: absent. Never a credential
};
template <class A>
void fields(A& a, DemoteChange& v) {
  a(v.index, v.path, v.old_value, v.new_value);
}
struct DemoteCall {
  core::ResourceId id;                ///< the resource; the call has no deadline of its own on the wire
  std::vector<DemoteChange> changes;  ///< at least one
};
template <class A>
void fields(A& a, DemoteCall& v) {
  a(v.id, v.changes);
}

/// The result of a call. `body` is the encoded answer: LoadAnswer, RefreshAnswer, HealthReport, Demotions, or one of
/// ext_messages.hpp.
struct CallResult {
  Code code = Code::ok;                        ///< of the plugin's function, or why the worker refused the call
  std::string message, body;                   ///< why, for people, without secrets; the encoded answer, empty if none
  std::int64_t retry_after_ms = 0;             ///< of the last diagnostic; 0: the agent decides
  std::string budget_hit;                      ///< the budget that this call exceeded: records | bytes | files
  std::uint64_t misuses = 0;                   ///< number of ABI rules that the plugin broke since the last result
  std::string misuse;                          ///< text of the first of them
  std::map<std::string, std::uint64_t> rules;  ///< their number by the function that was called wrongly
  std::uint64_t denied_secrets = 0;            ///< those of secret() with a token of another instance
};
template <class A>
void fields(A& a, CallResult& v) {
  a(v.code, v.message, v.body, v.retry_after_ms, v.budget_hit, v.misuses, v.misuse, v.rules, v.denied_secrets);
}
struct RefreshAnswer {
  bool unchanged = false;    ///< nothing changed since the cursor, so no record was sent
  std::int64_t next_ms = 0;  ///< as the plugin asks for it; 0: the agent decides
};
template <class A>
void fields(A& a, RefreshAnswer& v) {
  a(v.unchanged, v.next_ms);
}

}  // namespace driftd::ipc
