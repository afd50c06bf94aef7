// SPDX-License-Identifier: Apache-2.0
#include "engine/resource_budget.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "engine/context.hpp"

namespace driftd::engine {
namespace {

constexpr std::uint64_t kForgetAtLeast = 1'000;  // in one commit

std::uint64_t max_resources(const Ledger& ledger) { return ledger.spec().budgets.resources; }

/// Forgets resources that are gone and were never accepted. Those that retention already removed from the store are
/// only in the index.
Task<Status> forget(std::shared_ptr<Context> context, Ledger& ledger) {
  const auto many = static_cast<std::int64_t>(std::max(kForgetAtLeast, max_resources(ledger) / 10));
  DRIFTD_CO_TRY(const auto forgotten, co_await context->store.forget_gone(ledger.row().uid, many));
  for (const auto& id : forgotten) ledger.index().erase(id);
  if (static_cast<std::int64_t>(forgotten.size()) < many) ledger.index().erase_absent();
  if (!forgotten.empty()) {
    log::room("engine").info(
        "backend {}: {} resources that came and went are forgotten, to make room for new ones (budgets.resources: {})",
        ledger.spec().name, forgotten.size(), max_resources(ledger));
  }
  co_return Status{};
}

}  // namespace

Task<Result<Admission>> admit(std::shared_ptr<Context> context, Ledger& ledger, std::vector<ResourceReading> fresh) {
  Admission out;
  Index& index = ledger.index();
  const auto is_new = [&index](const ResourceReading& one) { return index.find(one.id) == nullptr; };
  const auto news = static_cast<std::uint64_t>(std::count_if(fresh.begin(), fresh.end(), is_new));
  if (news == 0 || index.size() + news <= max_resources(ledger)) {
    out.admitted = std::move(fresh);
    co_return out;
  }
  if (index.absent() > 0) DRIFTD_CO_CHECK(co_await forget(context, ledger));
  std::uint64_t added = 0;
  for (auto& one : fresh) {
    const bool known = !is_new(one);
    if (!known && index.size() + added >= max_resources(ledger)) {
      ++out.left_out[one.id.kind];
      continue;
    }
    added += known ? 0 : 1;
    out.admitted.push_back(std::move(one));
  }
  co_return out;
}

std::uint64_t remaining_resources(Ledger& ledger) {
  const std::uint64_t known = ledger.index().size();
  return known < max_resources(ledger) ? max_resources(ledger) - known : 0;
}

bool can_admit(Ledger& ledger) { return remaining_resources(ledger) > 0 || ledger.index().absent() > 0; }

std::string no_room(const Ledger& ledger, const std::string& kind) {
  const std::string first = ledger.established(kind)
                                ? ""
                                : "; until all fit, those that come in are taken as they are, because they may have "
                                  "been there before";
  return "budget: " + std::to_string(max_resources(ledger)) +
         " resources of this backend are known, and new ones are left out; raise its "
         "budgets.resources, or read less of it (include, exclude)" +
         first;
}

}  // namespace driftd::engine
