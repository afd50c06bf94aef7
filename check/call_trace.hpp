// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/provider.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/resource.hpp"

namespace driftd::check {

/// One record as the provider emitted it. `body` is raw: nothing is redacted.
struct Record {
  core::ResourceId id;
  std::string backend, body, status, version, external_name, origin;
  std::vector<core::Unread> unread;
  std::vector<std::string> sensitive;
  std::map<std::string, std::string> metadata;
  std::int64_t observed_ns = 0;
  std::uint32_t revision = 1;
  bool tombstone = false;
};

/// A mark, with the number of records and diagnostics that came before it in the call.
struct Mark {
  std::uint32_t type = 0;
  std::string kind, cursor, backend;
  std::uint64_t count = 0;
  std::size_t records_before = 0, diagnostics_before = 0;
};

/// A resource to read. `backend` means the same as in Record.
struct Identity {
  core::ResourceId id;
  std::string backend;
  friend auto operator<=>(const Identity&, const Identity&) = default;
};
std::string render(const Identity& identity);  ///< `kind/id`, `kind/id of backend`

/// A diagnostic and the backend that it belongs to.
struct Diagnostic : core::Diagnostic {
  std::string backend;
};

/// One verdict that `diff` pushed, unchanged.
struct Verdict {
  std::uint32_t index = 0, verdict = 0;
  std::string reason;
};

/// One verdict of a sink about an event.
struct Settlement {
  std::uint32_t outcome = 0;  ///< DRIFTD_OUTCOME_*
  std::int64_t retry_after_ms = 0;
  std::string detail;
};

/// Everything that a plugin emitted during one call, and how the call ended.
struct CallTrace {
  driftd_status status = DRIFTD_INTERNAL;
  bool threw = false;  ///< an exception left the provider's function
  std::vector<Record> records;
  std::vector<Mark> marks;
  std::vector<Diagnostic> diagnostics;
  std::vector<std::string> logs;  ///< text and key=value pairs, one line each
  std::vector<std::pair<std::string, double>> metrics;
  std::vector<std::string> permits;  ///< the buckets that were asked for
  std::vector<std::string> tokens;   ///< the tokens that secret() was asked for
  std::vector<core::HealthReport> health;
  std::vector<Verdict> verdicts;
  std::vector<std::string> pushed;              ///< texts that describe, schema and extensions pushed
  std::vector<const char*> functions;           ///< the first 100,000 host functions, in the order of their calls
  std::map<std::uint32_t, Settlement> settled;  ///< deliver: the first verdict about each event, by index
  std::uint64_t callbacks = 0;                  ///< how many host functions were called
  bool unchanged = false;                       ///< refresh only
  std::int64_t next_ms = 0;                     ///< refresh only

  /// Returns the count of each COMPLETE mark, by kind and backend.
  std::map<std::pair<std::string, std::string>, std::uint64_t> complete() const;
  /// Returns the number of records of each kind and backend.
  std::map<std::pair<std::string, std::string>, std::uint64_t> counts() const;
  /// Describes how the call ended, with the first diagnostic: `unavailable: text`. Says "without a diagnostic" if there
  /// was none.
  std::string why() const;
};

}  // namespace driftd::check
