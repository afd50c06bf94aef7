// SPDX-License-Identifier: Apache-2.0
// The chain of audit lines: its hash, and following it.
#include <algorithm>
#include <charconv>

#include "base/digest.hpp"
#include "core/audit.hpp"

namespace driftd::core {
namespace {

void put(std::string& out, std::string_view field) {
  char size[20];
  const auto end = std::to_chars(size, size + sizeof size, field.size());
  out.append(size, end.ptr);
  out += ':';
  out += field;
}

void put(std::string& out, std::int64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  put(out, std::string_view(digits, static_cast<std::size_t>(end.ptr - digits)));
}

}  // namespace

std::string chain_hash(const std::string& before, std::int64_t id, const AuditEntry& entry) {
  std::string text;
  text.reserve(1024);
  const Caller& caller = entry.caller;
  for (const std::int64_t number : {id, static_cast<std::int64_t>(entry.at_ns), caller.uid, caller.gid, caller.pid,
                                    static_cast<std::int64_t>(entry.expires_ns.value_or(0))}) {
    put(text, number);
  }
  for (const std::string* field : {&before, &entry.actor, &caller.claimed, &entry.verb, &entry.outcome, &entry.subject,
                                   &entry.backend, &entry.resource, &entry.digest, &entry.changes, &entry.reason}) {
    put(text, *field);
  }
  // Lines from before store version 9 have no such field. Fields are length-prefixed, so no other line has this text.
  if (!entry.request.empty()) put(text, entry.request);
  return to_hex(sha256(text));
}

Result<AuditLink> parse_audit_link(std::string_view text) {
  AuditLink out;
  const auto colon = text.find(':');
  const std::string_view digits = text.substr(0, colon);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), out.id);
  const bool number = read.ec == std::errc() && read.ptr == digits.data() + digits.size() && out.id > 0;
  if (number && colon != std::string_view::npos) out.hash = text.substr(colon + 1);
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (out.hash.size() == 64 && std::all_of(out.hash.begin(), out.hash.end(), hex)) return out;
  return fail(Code::invalid, "'" + shortened(std::string(text), 100) +
                                 "' is not ID:HASH: give `id` and `hash` of an audit_anchor event, or number and hash "
                                 "of a line that begins with `audit:` in the agent's log");
}

std::string AuditChain::begin(AuditLink from) {
  at_ = std::move(from);
  return compare(at_);
}

std::string AuditChain::check(const AuditRow& line) {
  if (line.id != at_.id + 1) {
    if (line.id <= at_.id) return "line " + std::to_string(line.id) + " stands behind line " + std::to_string(at_.id);
    return "lines " + std::to_string(at_.id + 1) + " to " + std::to_string(line.id - 1) + " are missing";
  }
  // the hash of a line without an end is that of one which ended in 1970
  const bool forged_end = line.expires_ns && *line.expires_ns == 0;
  if (forged_end || chain_hash(at_.hash, line.id, line) != line.hash) {
    return "line " + std::to_string(line.id) + " was changed after it was written";
  }
  at_.id = line.id;
  at_.hash = line.hash;
  return compare(at_);
}

std::string AuditChain::compare(const AuditLink& line) {
  if (!anchor_ || anchor_->id != line.id) return {};
  met_ = true;
  if (anchor_->hash == line.hash) return {};
  return "line " + std::to_string(line.id) + " has another hash than the anchor: the chain was written again";
}

std::string AuditChain::end(std::string& unchecked) const {
  if (!anchor_ || met_) return {};
  if (anchor_->id > at_.id) {
    return "the anchor names line " + std::to_string(anchor_->id) + ", and the log ends with line " +
           std::to_string(at_.id) + ": lines at its end were removed";
  }
  unchecked =
      "the anchor's line " + std::to_string(anchor_->id) + " is older than the checked lines: use a later anchor";
  return {};
}

}  // namespace driftd::core
