// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/drift.hpp"
#include "core/redact.hpp"
#include "core/value/schema.hpp"

namespace driftd::core {

/// One attribute of which nothing can be said now.
struct UnknownPath {
  std::string path;
  std::string reason;
};

/// Why an attribute is (not) a change: what `driftd explain` prints.
struct Step {
  std::string path;
  std::string old_raw, new_raw;    ///< canonical JSON, `[REDACTED]` for digests, empty: absent
  std::string old_norm, new_norm;  ///< after the rule
  std::string rule;                ///< the schema rule in words: `duration(ms) of "retention"`
  std::string verdict;             ///< equal | drift | unknown
  std::string reason;
};

/// One attribute whose new value is the baseline without a word.
struct FilledValue {
  std::string path;
  Value value;
  bool same = false;  ///< the value of before in another form, clear and digest
};

/// The three-valued outcome of comparing two bodies.
struct Difference {
  std::vector<Change> changes;       ///< sorted by path; redacted where either side is a digest
  std::vector<UnknownPath> unknown;  ///< unread, masked, unreadable: neither equal nor drift
  /// Attributes that are new to us and are filled in silently: brought by a newer schema revision (`since`), readable
  /// for the first time, digests under another key id or normaliser revision, or the same value in another form, clear
  /// and digest.
  std::vector<FilledValue> filled;
};

struct DiffOptions {
  std::uint32_t old_revision = 1;       ///< schema revision of the old body
  std::vector<Unread> unread;           ///< of the new body
  std::vector<std::string> was_unread;  ///< paths that the old body could not read
  bool declared_only = false;  ///< the old body is what is wanted, not what was read: set by diff_expected() alone
  std::vector<Step>* trace = nullptr;
  /// Whose bodies these are, and the keys of their digests: then a value in clear is compared with a digest exactly.
  /// Without them it is filled in silently.
  ResourceId id;
  const RedactionKeys* keys = nullptr;
};

/// Compares two bodies under a schema. Pure; any thread. Deepest differing attribute is reported: members of objects
/// one by one, lists as a whole unless the schema keys them, added or removed subtrees as one change at their root.
Difference diff(const Value& old_body, const Value& new_body, const KindSchema& schema, const DiffOptions& options);

}  // namespace driftd::core
