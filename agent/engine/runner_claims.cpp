// SPDX-License-Identifier: Apache-2.0
// Who is trusted about a backend's registration. Anybody who may write a label can write what a source reads, so only
// only those are trusted that the configuration or a person named (ADR 0015).
#include <algorithm>

#include "engine/runner.hpp"

namespace driftd::engine {
namespace {

core::ResourceId claim_id(const core::BackendSpec& spec) { return {"claim", spec.name}; }

}  // namespace

bool Runner::trusts(const core::Registrar& who) const {
  const core::BackendSpec& spec = ledger_.spec();
  // Only the discoverer, and only from the namespace in which it found the backend. A row of an older store gets that
  // namespace when a discovery finds the backend in exactly one.
  if (!spec.discovered_by.empty()) return spec.discovered_by == who.source && found_in_ == who.name_space;
  return std::any_of(spec.spoken_by.begin(), spec.spoken_by.end(), [&](const core::Registrar& named) {
    return named.source == who.source && (named.name_space.empty() || named.name_space == who.name_space);
  });
}

void Runner::found_in(const std::string& name_space) {
  if (found_in_.empty()) found_in_ = name_space;  // reregister() writes it to the row
}

Task<Status> Runner::load_claims() {
  const core::ResourceId id = claim_id(ledger_.spec());
  if (ledger_.index().find(id) == nullptr) co_return Status{};
  std::vector<core::ResourceId> ids(1, id);
  DRIFTD_CO_TRY(const auto rows, co_await context_->store.load(ledger_.row().uid, std::move(ids)));
  claims_.load(rows.front());
  co_return Status{};
}

Task<Status> Runner::update_claim_drift() {
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  if (stopping_) co_return Status{};
  const auto status = co_await write_claim_drift();
  co_return status;
}

/// Call it with the cycle mutex locked. Writes only if the claims changed or could not be written before.
Task<Status> Runner::write_claim_drift() {
  if (claims_.settled()) co_return Status{};
  const auto asked = claims_.names();
  std::vector<core::ResourceId> ids(1, claim_id(ledger_.spec()));
  DRIFTD_CO_TRY(auto rows, co_await context_->store.load(ledger_.row().uid, std::move(ids)));
  core::StoredResource& stored = rows.front();
  const bool never = asked.empty() && stored.revision == 0;  // the claim ended before it was stored
  core::Judgement judgement = core::judge_claims(ledger_.row().uid, stored, asked, context_->clock.wall());
  if (!never && (!judgement.transitions.empty() || judgement.next.baseline != stored.baseline)) {
    DRIFTD_CO_CHECK(co_await ledger_.commit(std::move(stored), std::move(judgement), "who speaks for it"));
  }
  claims_.settle(asked);
  co_return Status{};
}

}  // namespace driftd::engine
