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

/// One record as it crossed: `body` is raw, nothing is redacted.
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

/// A mark, and how many records and diagnostics of the call came before it.
struct Mark {
  std::uint32_t type = 0;
  std::string kind, cursor, backend;
  std::uint64_t count = 0;
  std::size_t records_before = 0, diagnostics_before = 0;
};

/// A resource to read; `backend` as in Record.
struct Identity {
  core::ResourceId id;
  std::string backend;
  friend auto operator<=>(const Identity&, const Identity&) = default;
};
std::string render(const Identity& identity);  ///< `kind/id`, `kind/id of backend`

/// A diagnostic with its backend.
struct Diagnostic : core::Diagnostic {
  std::string backend;
};

/// One demotion that `diff` pushed, as it was.
struct Verdict {
  std::uint32_t index = 0, verdict = 0;
  std::string reason;
};

/// Everything a provider trace during one call, and how the call ended.
struct CallTrace {
  driftd_status status = DRIFTD_INTERNAL;
  bool threw = false;  ///< an exception crossed the border
  std::vector<Record> records;
  std::vector<Mark> marks;
  std::vector<Diagnostic> diagnostics;
  std::vector<std::string> logs;  ///< text and key=value pairs, one line each
  std::vector<std::pair<std::string, double>> metrics;
  std::vector<std::string> permits;  ///< buckets
  std::vector<std::string> tokens;   ///< that secret() was asked for
  std::vector<core::HealthReport> health;
  std::vector<Verdict> verdicts;
  std::vector<std::string> pushed;     ///< texts of describe, schema and of extensions
  std::vector<const char*> functions;  ///< host functions in the order of their calls; the first 100,000
  std::uint64_t callbacks = 0;         ///< how many there were
  bool unchanged = false;              ///< refresh only
  std::int64_t next_ms = 0;            ///< refresh only

  /// Kind and backend with a COMPLETE mark, and the count it gave.
  std::map<std::pair<std::string, std::string>, std::uint64_t> complete() const;
  /// How many records of each kind and backend.
  std::map<std::pair<std::string, std::string>, std::uint64_t> counts() const;
  /// First diagnostic in words: `unavailable: text`; "without a diagnostic" when there was none.
  std::string why() const;
};

}  // namespace driftd::check
