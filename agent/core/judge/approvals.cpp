// SPDX-License-Identifier: Apache-2.0
// The rule of two persons: a drift whose policy asks for several approvals is accepted with the last of them.
#include <algorithm>
#include <array>

#include "core/judge/stages.hpp"
#include "core/ports/links.hpp"

namespace driftd::core {
namespace {

/// Metadata in which a system says who wrote a resource last.
constexpr std::array<std::string_view, 6> kWriters = {"actor",       "user",       "writer",
                                                      "modified_by", "changed_by", "manager"};

/// Returns true if `writer` is this actor, or an account of the same name (`ann@example.org`).
bool is_same_person(std::string_view writer, std::string_view actor) {
  return writer == actor || (!actor.empty() && writer.substr(0, writer.find('@')) == actor);
}

bool has_written(const StoredResource& row, const std::string& actor) {
  return std::any_of(kWriters.begin(), kWriters.end(), [&](std::string_view name) {
    const auto found = row.metadata.find(std::string(name));
    return found != row.metadata.end() && is_same_person(found->second, actor);
  });
}

bool ran_out(const Approval& approval, Nanos now_ns) { return approval.expires_ns && *approval.expires_ns <= now_ns; }

}  // namespace

int approvals_given(const Drift& drift, Nanos now_ns) {
  return static_cast<int>(std::count_if(drift.approvals.begin(), drift.approvals.end(), [&](const Approval& approval) {
    return approval.digest == drift.digest && !ran_out(approval, now_ns);
  }));
}

int approvals_needed(const Rules& rules, const Drift& drift) {
  int out = 1;
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
  // Nobody knows who opened a link, so all links together are one person.
  const bool link = is_link_actor(decision.actor);
  const auto own = [&](const Approval& approval) {
    return approval.actor == decision.actor || (link && is_link_actor(approval.actor));
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
  const std::string typed = link && decision.caller.claimed.starts_with("typed:")
                                ? decision.caller.claimed.substr(std::string("typed:").size())
                                : decision.actor;
  if (has_written(row, typed)) {
    return fail(Code::conflict, name_of(drift) + ": " + typed + " made this change, as the system says; its " +
                                    "policy asks for the approval of others");
  }
  drift.approvals.push_back({decision.actor, drift.digest, decision.at_ns, decision.expires_ns});
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
