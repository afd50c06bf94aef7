// SPDX-License-Identifier: Apache-2.0
// Checks the chain of audit lines in bounded read transactions and in bounded memory.
#pragma once

#include <filesystem>
#include <optional>

#include "core/audit.hpp"
#include "store/sqlite.hpp"

namespace driftd::store {

inline constexpr int kAuditPage = 2'000;  ///< lines of one read transaction

/// One check of the whole chain. Between two steps lines may be written and old ones deleted.
class AuditWalk {
 public:
  explicit AuditWalk(std::optional<core::AuditLink> anchor) : chain_(std::move(anchor)) {}
  /// Checks the next kAuditPage lines, in the read transaction that the caller opened.
  Status step(Connection& db);
  bool done() const { return done_; }
  const core::AuditProof& proof() const { return proof_; }

 private:
  Status begin_page(Connection& db);
  Status end(Connection& db);
  void break_off(std::string why);

  core::AuditChain chain_;
  core::AuditProof proof_;
  bool begun_ = false, done_ = false;
};

/// Checks the chain of a store or backup, also beside a running agent. Blocks. Returns `not_found` or `corrupt` if it
/// is not a readable store; a broken chain is an answer.
Result<core::AuditProof> verify_audit(const std::filesystem::path& file, std::optional<core::AuditLink> anchor);

/// Columns of read_audit_line(), in their order.
#define DRIFTD_AUDIT_COLUMNS                                                                                       \
  "id, at_ns, actor, verb, subject, reason, outcome, uid, gid, pid, claimed, backend, resource, digest, changes, " \
  "expires_ns, hash, request"
core::AuditRow read_audit_line(const Statement& row);
/// Returns a link of the chain: `anchor` (the last deleted line), `head` (the last line), `announced`.
Result<core::AuditLink> read_audit_link(Connection& db, std::string_view position);

}  // namespace driftd::store
