// SPDX-License-Identifier: Apache-2.0
#include "delivery/approval_queue.hpp"

#include <algorithm>
#include <memory>

#include "base/escape.hpp"
#include "core/presentable_text.hpp"

namespace driftd::delivery {
namespace {

constexpr std::size_t kShownChanges = 10;
constexpr std::size_t kShownValue = 120;
constexpr int kAttempts = 3;  // a commit of a cycle may change the row between load and write

std::string shown(const core::Change& change, const std::optional<std::string>& value) {
  if (!value) return "(absent)";
  return change.redacted ? "[REDACTED]" : core::presentable_text(*value);
}

std::string title_of(const core::DriftRow& row) {
  const core::Drift& drift = row.drift;
  return row.backend + ": " + core::render(drift.resource) + " " + std::string(core::render(drift.operation)) + " (" +
         std::string(core::render(drift.cls)) + ")";
}

std::string message_of(const core::Drift& drift) {
  std::string out;
  for (std::size_t i = 0; i < std::min(drift.changes.size(), kShownChanges); ++i) {
    const core::Change& change = drift.changes[i];
    const auto [before, now] =
        around_difference(shown(change, change.old_value), shown(change, change.new_value), kShownValue);
    out += change.path + ": " + before + " → " + now + "\n";
  }
  if (drift.changes.size() > kShownChanges) {
    out += "and " + std::to_string(drift.changes.size() - kShownChanges) + " more\n";
  }
  if (drift.against == core::Against::expectation) out += "This violates `expect:`; to accept it, change `expect:`.\n";
  if (drift.stale_since_ns) out += "The value cannot be read since " + render_time(*drift.stale_since_ns) + ".\n";
  if (!out.empty()) out.pop_back();
  return out;
}

bool is_claimed(const core::Drift& drift, Nanos now) {
  return !drift.claimed_by.empty() && drift.claim_until_ns && *drift.claim_until_ns > now;
}

}  // namespace

Notification make_notification(const core::DriftRow& row, Nanos now_ns) {
  const core::Drift& drift = row.drift;
  Notification out;
  out.id = drift.id;
  out.drift_ids = {drift.id};
  out.backend = row.backend;
  out.resource = core::render(drift.resource);
  out.change_class = std::string(core::render(drift.cls));
  out.title = title_of(row);
  out.message = message_of(drift);
  if (drift.against == core::Against::baseline) out.actions.push_back("APPROVE");
  out.actions.insert(out.actions.end(), {"REJECT", "IGNORE"});
  out.digest = drift.digest;
  out.opened_ns = drift.opened_ns;
  out.stale = drift.stale_since_ns.has_value();
  if (is_claimed(drift, now_ns)) {
    out.claimed_by = drift.claimed_by;
    out.claim_until_ns = drift.claim_until_ns;
  }
  return out;
}

Task<Result<std::vector<Notification>>> ApprovalQueue::list(std::string backend, int limit) {
  core::DriftFilter filter;
  filter.backend = std::move(backend);
  filter.status = core::DriftStatus::pending;
  filter.limit = limit;
  const auto out = std::make_shared<std::vector<Notification>>();
  core::Reader::RowHandler<core::DriftRow> take = [out, now = clock_.wall()](core::DriftRow row) {  // oldest first
    out->push_back(make_notification(row, now));
    return true;
  };
  DRIFTD_CO_TRY([[maybe_unused]] const bool ended, co_await reader_.each_drift(std::move(filter), std::move(take)));
  co_return std::move(*out);
}

Task<Result<Notification>> ApprovalQueue::claim_next(std::string who, std::chrono::seconds lease) {
  DRIFTD_CO_TRY(auto waiting, co_await list("", 1000));
  for (auto& notification : waiting) {
    if (!notification.claimed_by.empty()) continue;
    const Status claimed = co_await claim(notification.id, who, lease);
    if (!claimed && claimed.error().code != Code::conflict && claimed.error().code != Code::not_found) {
      co_return fail(claimed.error());
    }
    if (!claimed) continue;  // somebody else claimed it first
    notification.claimed_by = who;
    notification.claim_until_ns = clock_.wall() + std::chrono::nanoseconds(lease).count();
    co_return std::move(notification);
  }
  co_return fail(Code::not_found, "no unclaimed notification waits for a decision");
}

Task<Status> ApprovalQueue::claim(std::string drift_id, std::string who, std::chrono::seconds lease) {
  const Nanos until = clock_.wall() + std::chrono::nanoseconds(lease).count();
  co_return co_await write_claim(std::move(drift_id), std::move(who), until);
}

Task<Status> ApprovalQueue::release(std::string drift_id, std::string who) {
  co_return co_await write_claim(std::move(drift_id), std::move(who), std::nullopt);
}

Task<Status> ApprovalQueue::write_claim(std::string drift_id, std::string who, std::optional<Nanos> until) {
  Status last = fail(Code::internal, "the claim of drift " + drift_id + " was not written");
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    DRIFTD_CO_TRY(auto owner, co_await store_.owner_of(drift_id));
    auto& open = owner.resource.open;
    const auto drift = std::find_if(open.begin(), open.end(), [&](const auto& d) { return d.id == drift_id; });
    if (drift == open.end()) co_return fail(Code::not_found, "no open drift " + drift_id);
    if (is_claimed(*drift, clock_.wall()) && drift->claimed_by != who) {
      co_return fail(Code::conflict, "drift " + drift_id + " is claimed by " + drift->claimed_by + " until " +
                                         render_time(*drift->claim_until_ns));
    }
    drift->claimed_by = until ? who : "";
    drift->claim_until_ns = until;
    core::PageCommit page;
    page.backend_uid = owner.backend_uid;
    page.writes.push_back({std::move(owner.resource), {}});
    const auto committed = co_await store_.commit(std::move(page));
    if (committed) co_return Status{};
    last = fail(committed.error());
    if (committed.error().code != Code::conflict) break;
  }
  co_return last;
}

}  // namespace driftd::delivery
