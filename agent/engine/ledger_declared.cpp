// SPDX-License-Identifier: Apache-2.0
// Declarations of sources about a backend's resources.
#include "engine/context.hpp"
#include "engine/ledger_page.hpp"

namespace driftd::engine {

Task<Status> Ledger::load_declared() {
  DRIFTD_CO_TRY(const auto entries, co_await context_->store.declared_of(row_.name));
  declared_.clear();
  for (const auto& entry : entries) declared_[entry.id] += core::generation_term(entry.source_uid, entry.digest);
  co_return Status{};
}

Task<Status> Ledger::Page::add_declared(std::vector<core::JudgeContext>& contexts) const {
  std::map<core::ResourceId, std::size_t> wanted;
  std::vector<core::ResourceId> some;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (ledger_.declared_.contains(ids_[i]) && wanted.emplace(ids_[i], i).second) some.push_back(ids_[i]);
  }
  if (some.empty()) co_return Status{};
  DRIFTD_CO_TRY(auto declarations, co_await ledger_.context_->store.declarations(ledger_.row_.name, std::move(some)));
  for (auto& declaration : declarations) contexts[wanted.at(declaration.id)].declared.push_back(std::move(declaration));
  co_return Status{};
}

std::vector<core::ResourceId> Ledger::declared_absent(const std::string& kind, std::uint32_t run) {
  std::vector<core::ResourceId> out;
  for (auto at = declared_.lower_bound({kind, ""}); at != declared_.end() && at->first.kind == kind; ++at) {
    if (!scope_.wants(at->first)) continue;
    const Index::Entry* known = index_.find(at->first);
    const bool there = known != nullptr && (known->present || known->run == run);
    const bool judged =
        known != nullptr && known->open && known->generation == static_cast<std::uint32_t>(generation(at->first));
    if (!there && !judged) out.push_back(at->first);
  }
  return out;
}

}  // namespace driftd::engine
