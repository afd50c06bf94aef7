// SPDX-License-Identifier: Apache-2.0
// Who is believed about a backend's registration. What a source reads, anybody may have written who may write a label; so
// nobody is believed whom neither the configuration nor a person named (ADR 0015).
#include <algorithm>

#include "engine/runner.hpp"

namespace driftd::engine {
namespace {

core::ResourceId claim_of(const core::BackendSpec& spec) { return {"claim", spec.name}; }

}  // namespace

bool Runner::believes(const core::Speaker& who) const {
  const core::BackendSpec& spec = ledger_.spec();
  if (!spec.discovered_by.empty()) {  // whoever found it, where it was found
    const auto where = ledger_.row().notes.find(kFoundIn);
    return spec.discovered_by == who.source && (where == ledger_.row().notes.end() || where->second == who.name_space);
  }
  return std::any_of(spec.spoken_by.begin(), spec.spoken_by.end(), [&](const core::Speaker& named) {
    return named.source == who.source && (named.name_space.empty() || named.name_space == who.name_space);
  });
}

Task<Status> Runner::load_claims() {
  const core::ResourceId id = claim_of(ledger_.spec());
  if (ledger_.index().find(id) == nullptr) co_return Status{};
  std::vector<core::ResourceId> ids(1, id);
  DRIFTD_CO_TRY(const auto rows, co_await context_->store.load(ledger_.row().uid, std::move(ids)));
  claims_.load(rows.front());
  co_return Status{};
}

Task<Status> Runner::settle_claims() {
  const auto self = shared_from_this();
  const Turn::Held held = co_await turn_.enter();
  if (stopping_) co_return Status{};
  std::vector<core::ResourceId> ids(1, claim_of(ledger_.spec()));
  DRIFTD_CO_TRY(auto rows, co_await context_->store.load(ledger_.row().uid, std::move(ids)));
  core::StoredResource& stored = rows.front();
  if (claims_.empty() && stored.revision == 0) co_return Status{};
  core::Judgement judgement = core::judge_claims(ledger_.row().uid, stored, claims_.names(), context_->clock.wall());
  if (judgement.transitions.empty() && judgement.next.baseline == stored.baseline) co_return Status{};
  const auto status = co_await ledger_.commit(std::move(stored), std::move(judgement), "who speaks for it");
  co_return status;
}

}  // namespace driftd::engine
