// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/result.hpp"

namespace driftd::core {

/// Identity of a resource within one backend: `topic/orders` is {"topic", "orders"}.
struct ResourceId {
  std::string kind;
  std::string id;
  friend auto operator<=>(const ResourceId&, const ResourceId&) = default;
};
std::string render(const ResourceId& id);  ///< `kind/id`

/// An attribute that could not be read (semantics 5).
struct Unread {
  std::string path;  ///< path text; may end in `.**`
  Code code = Code::denied;
  std::string reason;
};

/// A resource as it was read; the agent's copy of driftd_record. `body` and `status` are JSON objects. In `body` every
/// sensitive value is a digest (redact.hpp), never clear text.
struct Observation {
  ResourceId id;
  std::string backend;  ///< empty for the session's own backend
  std::string body;
  std::string status = "{}";
  std::string version;
  std::string external_name;
  std::string origin;
  std::vector<Unread> unread;
  std::map<std::string, std::string> metadata;
  Nanos observed_ns = 0;
  std::uint32_t schema_revision = 1;
  bool tombstone = false;
  /// Only id, version, observed_ns and digest are set: the worker sent the rest before. Only in a refresh that allows
  /// it.
  bool digest_only = false;
  Digest digest;  ///< over identity, external name, body and unread, seeded per installation; computed in the worker
};

/// A position in the stream of records.
struct Mark {
  enum class Type { checkpoint = 1, complete = 2, bookmark = 3 };
  Type type = Type::checkpoint;
  std::string kind;
  std::string cursor;
  std::uint64_t count = 0;
  std::string backend;  ///< as in Observation
};

/// What a provider reports about a failure (driftd_diagnostic).
struct Diagnostic {
  Code code = Code::internal;
  std::string kind, id, path, text;
  std::string right;  ///< the permission that is missing, as the system names it: `pg_monitor`; empty if it is not that
  std::int64_t retry_after_ms = 0;
  std::string backend;  ///< as in Observation
};

/// Reachability of a backend at one moment (driftd_health).
struct HealthReport {
  enum class State { unknown, up, degraded, down };
  State state = State::unknown;
  std::int64_t latency_us = 0;
  std::string reason, role, system_identity, server_version;
};
std::string_view render(HealthReport::State state);

}  // namespace driftd::core
