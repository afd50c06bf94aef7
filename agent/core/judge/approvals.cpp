// SPDX-License-Identifier: Apache-2.0
// The rule of two persons: a drift whose policy asks for several approvals is accepted with the last of them.
#include <algorithm>
#include <array>
#include <set>

#include "core/judge/stages.hpp"
#include "core/ports/links.hpp"

namespace driftd::core {
namespace {

/// Metadata in which a system says who wrote a resource last.
constexpr std::array<std::string_view, 6> kWriters = {"actor",       "user",       "writer",
                                                      "modified_by", "changed_by", "manager"};

/// The names of who decides: the user's, that of the number, and whom the login or sudo names. A claim is no proof of a
/// second person, but reason enough to doubt that there is one.
std::set<std::string> names_of(const std::string& actor, std::int64_t uid, const std::string& claimed) {
  std::set<std::string> out{actor};
  if (uid >= 0) out.insert("uid:" + std::to_string(uid));
  if (const auto colon = claimed.find(':'); colon != std::string::npos) out.insert(claimed.substr(colon + 1));
  out.erase("");
  return out;
}

bool share_a_name(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

/// Returns true if the writer is one of these, or has an account of the same name (`ann@example.org`).
bool is_one_of(std::string_view writer, const std::set<std::string>& names) {
  const auto account = [](std::string_view name) { return name.substr(0, name.find('@')); };
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return writer == name || (!account(name).empty() && account(writer) == account(name));
  });
}

bool has_written(const StoredResource& row, const std::set<std::string>& names) {
  return std::any_of(kWriters.begin(), kWriters.end(), [&](std::string_view name) {
    const auto found = row.metadata.find(std::string(name));
    return found != row.metadata.end() && is_one_of(found->second, names);
  });
}

/// Returns the most persons that a rule about resources of this kind asks for: whoever accepts that many of them are
/// gone accepts each of these deletions.
int needed_by_kind(const Rules& rules, const std::string& kind) {
  int out = 1;
  for (const auto& rule : rules.policy) {
    if (!rule.match.kind || rule.match.kind->matches(kind)) out = std::max(out, rule.approvals);
  }
  return out;
}

bool ran_out(const Approval& approval, Nanos now_ns) { return approval.expires_ns && *approval.expires_ns <= now_ns; }

}  // namespace

int approvals_given(const Drift& drift, Nanos now_ns) {
  return static_cast<int>(std::count_if(drift.approvals.begin(), drift.approvals.end(), [&](const Approval& approval) {
    return approval.digest == drift.digest && !ran_out(approval, now_ns);
  }));
}

int approvals_needed(const Rules& rules, const Drift& drift) {
  int out = drift.resource.kind == "scope" ? needed_by_kind(rules, drift.resource.id) : 1;
  for (const auto& change : drift.changes) {
    const Path path = attribute_path(change.path);
    out = std::max(out, choose_policy(rules, drift.resource, path, change.cls, false).approvals);
  }
  return out;
}

bool drop_void_approvals(Drift& drift, Nanos now_ns) {
  if (!drift.open()) return false;
  const auto expired = [&](const Approval& approval) { return ran_out(approval, now_ns); };
  const bool any = std::any_of(drift.approvals.begin(), drift.approvals.end(), expired);
  std::erase_if(drift.approvals,
                [&](const Approval& approval) { return expired(approval) || approval.digest != drift.digest; });
  return any;
}

Status add_approval(Drift& drift, const StoredResource& row, const Decision& decision) {
  const auto names = names_of(decision.actor, decision.caller.uid, decision.caller.claimed);
  // Nobody knows who opened a link, so all links together are one person.
  const bool link = is_link_actor(decision.actor);
  const auto own = [&](const Approval& approval) {
    return share_a_name(names_of(approval.actor, approval.uid, approval.claimed), names) ||
           (link && is_link_actor(approval.actor));
  };
  if (std::any_of(drift.approvals.begin(), drift.approvals.end(), own)) {
    if (link) {
      return fail(Code::conflict, name_of(drift) + ": it was approved by a link already, and links count as one " +
                                      "person; it needs " + std::to_string(drift.approvals_needed) +
                                      ", so somebody must approve it with `driftd approve`");
    }
    return fail(Code::conflict, name_of(drift) + ": you approved it already; it needs " +
                                    std::to_string(drift.approvals_needed) + " persons, so another one must");
  }
  if (has_written(row, names)) {
    const bool typed = link && decision.caller.claimed.starts_with(kTyped);
    const std::string who = typed ? decision.caller.claimed.substr(kTyped.size()) : decision.actor;
    return fail(Code::conflict, name_of(drift) + ": " + who + " made this change, as the system says; its " +
                                    "policy asks for the approval of others");
  }
  drift.approvals.push_back({decision.actor, drift.digest, decision.at_ns, decision.expires_ns, decision.caller.uid,
                             decision.caller.claimed});
  return {};
}

Status withdraw_approval(Drift& drift, const Decision& decision) {
  auto& given = drift.approvals;
  if (given.empty()) return fail(Code::conflict, name_of(drift) + " is not decided: there is nothing to undo");
  const auto own = std::find_if(given.begin(), given.end(),
                                [&](const Approval& approval) { return approval.actor == decision.actor; });
  given.erase(own == given.end() ? std::prev(own) : own);
  return {};
}

}  // namespace driftd::core
