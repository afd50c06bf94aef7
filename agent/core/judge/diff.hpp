// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/resource.hpp"
#include "core/value/value.hpp"

namespace driftd::core {

struct Change;
class KindSchema;
class KnownNames;
struct RedactionKeys;

/// One attribute that can be judged neither equal nor different now.
struct UnknownPath {
  std::string path;
  std::string reason;
};

/// Why an attribute is (not) a change: what `driftd explain` prints.
struct Step {
  std::string path;
  std::string old_raw, new_raw;    ///< canonical JSON, `[REDACTED]` for digests; empty if absent
  std::string old_norm, new_norm;  ///< normal forms under the rule
  std::string rule;                ///< the schema rule as text: `duration(ms) of "retention"`
  std::string verdict;             ///< equal | drift | unknown
  std::string reason;
};

/// One attribute whose new value becomes the baseline silently.
struct FilledValue {
  std::string path;
  Value value;
  bool same = false;  ///< the same value in another form: it was clear text and is a digest now, or the reverse
};

/// The outcome of comparing two bodies: changed, unknown, or (not listed) equal.
struct Difference {
  std::vector<Change> changes;       ///< sorted by path; redacted where either side is a digest
  std::vector<UnknownPath> unknown;  ///< unread, masked or unreadable attributes: neither equal nor drift
  /// Attributes that are filled in silently: added by a newer schema revision (`since`), readable for the first time,
  /// digests under another key id or normaliser revision, or the same value in another form (clear text and digest).
  std::vector<FilledValue> filled;
};

struct DiffOptions {
  std::uint32_t old_revision = 1;       ///< schema revision of the old body
  std::vector<Unread> unread;           ///< of the new body
  std::vector<std::string> was_unread;  ///< paths that the old body could not read
  bool declared_only = false;           ///< the old body is expected, it was not read; only diff_expected() sets this
  std::vector<Step>* trace = nullptr;
  /// The resource of these bodies and the keys of their digests. With them a clear-text value is compared with a digest
  /// exactly, without them it is filled in silently.
  ResourceId id;
  const RedactionKeys* keys = nullptr;
  const KnownNames* known = nullptr;  ///< which references mean one thing, beside those that a rule equates
};

/// Compares two bodies under a schema. It reports the deepest attribute that differs: members of objects one by one,
/// lists as a whole unless the schema gives them keys, added or removed subtrees as one change at their root. Pure; any
/// thread.
Difference diff(const Value& old_body, const Value& new_body, const KindSchema& schema, const DiffOptions& options);

}  // namespace driftd::core
