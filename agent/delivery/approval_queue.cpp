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

std::string shown(const core::Change& change, const std::optional<std::string>& value) {
  if (!value) return "(absent)";
  return change.redacted ? "[REDACTED]" : core::presentable_text(*value);
}

std::string message_of(const core::Drift& drift) {
  std::string out;
  for (std::size_t i = 0; i < std::min(drift.changes.size(), kShownChanges); ++i) {
    const core::Change& change = drift.changes[i];
    const auto [before, now] =
        around_difference(shown(change, change.old_value), shown(change, change.new_value), kShownValue);
    const bool itself = change.path.empty() || change.path == core::kIdentityPath;
    const std::string field = core::render(drift.resource) +
                              (itself ? " (" + std::string(core::render(drift.operation)) + ")" : ":" + change.path);
    out += "Field " + field + " changed from " + before + " to " + now + "\n";
  }
  if (drift.changes.size() > kShownChanges) {
    out += "and " + std::to_string(drift.changes.size() - kShownChanges) + " more\n";
  }
  if (drift.against == core::Against::expectation) out += "This violates `expect:`; to accept it, change `expect:`.\n";
  if (drift.stale_since_ns) out += "The value cannot be read since " + render_time(*drift.stale_since_ns) + ".\n";
  if (!out.empty()) out.pop_back();
  return out;
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
  out.title = "Backend drift detected: " + row.backend;
  out.message = message_of(drift);
  if (drift.against == core::Against::baseline) out.actions.push_back("APPROVE");
  out.actions.insert(out.actions.end(), {"REJECT", "IGNORE"});
  out.digest = drift.digest;
  out.opened_ns = drift.opened_ns;
  out.stale = drift.stale_since_ns.has_value();
  if (drift.approvals_needed > 1) {
    out.approvals =
        std::to_string(core::approvals_given(drift, now_ns)) + " of " + std::to_string(drift.approvals_needed);
  }
  if (core::is_claimed(drift, now_ns)) {
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

}  // namespace driftd::delivery
