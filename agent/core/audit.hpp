// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace driftd::core {

struct Change;
struct Drift;

/// The process that asked, as the kernel reports it (SO_PEERCRED).
struct Caller {
  std::int64_t uid = -1, gid = -1, pid = 0;  ///< -1 if no process asked and the agent acted by itself
  std::string claimed;  ///< `loginuid:alice`, `SUDO_USER:alice`; not proven. Empty if nothing is claimed
};

/// How the verb begins of a line that is written before a request is carried out which no transaction can undo.
inline constexpr std::string_view kAsked = "asked ";

/// One line of the audit log: who did what to what, when, why, and with which outcome.
struct AuditEntry {
  Nanos at_ns = 0;
  std::string actor;  ///< user name of the caller; `driftd` for what the agent does by itself
  Caller caller;
  std::string verb;               ///< `approved`, `undid ignore`, `expired reject`, `asked reload`, `reload` …
  std::string outcome;            ///< empty if it was done, else why not: `conflict: …`, `denied: …`
  std::string subject;            ///< drift id, sink, plugin …
  std::string backend, resource;  ///< names; empty if the line is about none
  std::string digest;             ///< digest of the values that a decision was about
  std::string changes;            ///< those values, redacted: a JSON list of {path, old, new}; empty if there are none
  std::string reason;
  std::optional<Nanos> expires_ns;
  std::string request;  ///< names the lines of one request: `asked …` and how it ended; empty for a single line
  /// Set for a line about the rules of `backend`: what they are from now on, empty if it has none any more. The store
  /// compares them with what it last named, and fills in `verb` and `changes`. Not stored itself.
  std::optional<std::string> rules = {};
};

/// A stored line. The hash covers the line and the hash of the line before it.
struct AuditRow : AuditEntry {
  std::int64_t id = 0;
  std::string hash;  ///< 64 hex; empty for lines older than the chain
};

/// A line of the chain by its number and hash, as an `audit_anchor` event or the agent's log named it.
struct AuditLink {
  std::int64_t id = 0;
  std::string hash;  ///< empty for line 0, which is in front of the chain
};
/// Parses `ID:HASH`.
Result<AuditLink> parse_audit_link(std::string_view text);

/// The result of checking the hash chain of the audit log.
struct AuditProof {
  bool whole = false;                       ///< no line was changed, and none is missing between anchor and head
  std::string broken;                       ///< at which line and how it is broken; empty if it is whole
  std::string unchecked;                    ///< why the given anchor could not be compared; empty if it was
  std::string untested;                     ///< which line was taken as it is, and why; empty if each was checked
  std::int64_t lines = 0;                   ///< number of checked lines
  std::int64_t unchained = 0;               ///< number of lines from before the chain began
  std::int64_t anchor_id = 0, head_id = 0;  ///< the last pruned line (0 if none was), and the last written line
  std::string anchor_hash, head_hash;
};

/// Follows a chain line by line, and compares it with an anchor that somebody kept outside.
class AuditChain {
 public:
  explicit AuditChain(std::optional<AuditLink> anchor = {}) : anchor_(std::move(anchor)) {}
  /// Continues behind this line, which needs no check: it is the last deleted one, or stands in front of a
  /// part of the log. Returns how it contradicts the anchor; empty if it does not.
  std::string begin(AuditLink from);
  /// Returns how the chain is broken at this line. Empty if the line follows the one before it.
  std::string check(const AuditRow& line);
  /// Returns how the end of the chain contradicts the anchor. Empty if it does not. Sets `unchecked` if the anchor lies
  /// before the checked lines.
  std::string end(std::string& unchecked) const;
  const AuditLink& at() const { return at_; }  ///< the last line

 private:
  std::string compare(const AuditLink& line);

  std::optional<AuditLink> anchor_;
  AuditLink at_;
  bool met_ = false;  ///< the anchor's line was seen
};

/// Returns at most `bytes` of a text, with `…` where something was cut off. Never cuts inside a character.
std::string shortened(std::string text, std::size_t bytes);
/// Renders changes for an audit line: redacted, each value at most 1 KiB, at most 64 changes.
std::string audit_changes(const std::vector<Change>& changes);
/// Returns an entry about this drift, with subject, resource, digest and changes.
AuditEntry make_audit_entry(const Drift& drift, const std::string& backend);
/// Returns the hash of the line that follows one with the hash `before`: SHA-256 over its length-prefixed fields.
std::string chain_hash(const std::string& before, std::int64_t id, const AuditEntry& entry);

}  // namespace driftd::core
