// SPDX-License-Identifier: Apache-2.0
// How a cycle holds a mass deletion until a person decides. When many resources are gone at once, the list or the
// rights to read it may be at fault. How many are many, and the question itself: core/judge/mass_deletion. What was
// approved: engine/approved_deletions.
#include <algorithm>
#include <functional>
#include <iterator>

#include "core/judge/judge.hpp"
#include "engine/context.hpp"
#include "engine/cycle.hpp"
#include "engine/ledger.hpp"

namespace driftd::engine {

Task<Result<Cycle::Missing>> Cycle::hold_mass_deletion(std::string kind, std::size_t present,
                                                       std::vector<core::ResourceId> gone) {
  Missing out;
  std::vector<core::ResourceId> asked;
  const auto accepted = [this](const core::ResourceId& id) { return ledger_.accepted_by(id) != nullptr; };
  std::copy_if(gone.begin(), gone.end(), std::back_inserter(asked), std::not_fn(accepted));
  out.gone = std::move(gone);
  // Before the first complete list nothing was accepted, so nothing can be deleted.
  const bool judged = ledger_.established(kind) || ledger_.partial(kind);
  if (!context_->asks_about_mass_deletions || !judged) co_return out;
  if (!core::mass_deletion(present, asked.size())) co_return out;
  // Resources that came and went before they were accepted need no question.
  const std::size_t missing = asked.size();
  DRIFTD_CO_TRY(asked, co_await ledger_.with_baseline(std::move(asked)));
  present -= missing - asked.size();
  if (!core::mass_deletion(present, asked.size())) co_return out;
  add_once(kinds_[kind].reasons, std::to_string(asked.size()) + " of " + std::to_string(present) +
                                     " gone at once: held until someone decides the drift of scope/" + kind);
  for (const auto& id : asked) out.held.push_back(id.id);
  const std::set<std::string> names(out.held.begin(), out.held.end());
  std::erase_if(out.gone, [&](const core::ResourceId& id) { return names.contains(id.id); });
  co_return out;
}

}  // namespace driftd::engine
