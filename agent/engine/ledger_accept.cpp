// SPDX-License-Identifier: Apache-2.0
// Parts of the ledger beside the rows: approved deletions, decisions that expire, missing resources, kinds that the
// provider no longer has.
#include <algorithm>

#include "core/ports/session.hpp"
#include "engine/context.hpp"
#include "engine/ledger.hpp"
#include "engine/record_versions.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kLoadAtOnce = 16;  // rows: there may be many, each with megabytes

std::vector<std::string> to_names(const std::vector<core::ResourceId>& ids) {
  std::vector<std::string> out;
  out.reserve(ids.size());
  for (const auto& id : ids) out.push_back(id.id);
  return out;
}

}  // namespace

Task<Status> Ledger::note_expiries(std::vector<core::ResourceId> open) {
  for (std::size_t at = 0; at < open.size(); at += kLoadAtOnce) {
    const auto end = std::min(open.size(), at + kLoadAtOnce);
    std::vector<core::ResourceId> some(open.begin() + static_cast<std::ptrdiff_t>(at),
                                       open.begin() + static_cast<std::ptrdiff_t>(end));
    DRIFTD_CO_TRY(const auto rows, co_await context_->store.load(row_.uid, std::move(some)));
    for (const auto& row : rows) note_expiry(row);
  }
  co_return Status{};
}

void Ledger::note_expiry(const core::StoredResource& next) {
  const bool due = std::any_of(next.open.begin(), next.open.end(), [](const core::Drift& drift) {
    return drift.action == core::Action::enforce && drift.status == core::DriftStatus::pending;
  });
  if (due && scope_.wants(next.id))
    to_enforce_.insert(next.id);
  else
    to_enforce_.erase(next.id);
  expiring_.erase(next.id);
  const auto note = [&](std::optional<Nanos> expires_ns) {
    if (!expires_ns) return;
    const auto [first, fresh] = expiring_.try_emplace(next.id, *expires_ns);
    if (!fresh) first->second = std::min(first->second, *expires_ns);
  };
  for (const auto& drift : next.open) {
    note(drift.expires_ns);
    for (const auto& approval : drift.approvals) note(approval.expires_ns);
  }
}

std::optional<Nanos> Ledger::first_expiry() const {
  const auto sooner = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto first = std::min_element(expiring_.begin(), expiring_.end(), sooner);
  if (first == expiring_.end()) return std::nullopt;
  return first->second;
}

void Ledger::set_row(core::BackendRow row) {
  const bool distrusted = versions_since(row) != versions_since(row_);
  row_ = std::move(row);
  if (distrusted) index_.forget_versions();
  deletions_.load(row_.notes);
}

core::BackendRow Ledger::row_accepting(const std::string& kind, const std::string& by, const std::string& seen) const {
  core::BackendRow out = row_;
  ApprovedDeletions::approve(out.notes, kind, by, seen);
  return out;
}

bool Ledger::has_open_question(const std::string& kind) {
  const Index::Entry* question = index_.find({"scope", kind});
  return question != nullptr && question->open;
}

Task<Status> Ledger::find_accepted(std::string kind, std::vector<core::ResourceId> missing) {
  // only those with a baseline were in the question
  DRIFTD_CO_TRY(const auto asked, co_await with_baseline(std::move(missing)));
  deletions_.match_names(kind, to_names(asked));
  co_return Status{};
}

Task<Result<std::size_t>> Ledger::update_scope_drift(std::string kind, std::vector<std::string> held,
                                                     core::GoneNames shown) {
  const core::ResourceId id{"scope", std::move(kind)};
  if (held.empty() && !has_open_question(id.id) && !deletions_.approved(id.id)) co_return std::size_t{0};
  std::vector<core::ResourceId> ids(1, id);
  DRIFTD_CO_TRY(auto rows, co_await context_->store.load(row_.uid, std::move(ids)));
  // Held resources are not approved, so the baseline of an earlier approval must not answer this question.
  core::StoredResource stored = rows.front();
  if (stored.baseline) stored.baseline = "{}";
  core::Judgement judgement = core::judge_scope(row_.uid, stored, held, context_->clock.wall(), shown);
  const std::size_t transitions = judgement.transitions.size();
  const std::string observed = judgement.next.observed.value_or("{}");
  // A finished approval must not become a baseline: if the same names are gone again, that is a new question.
  if (transitions > 0 || judgement.next.baseline != rows.front().baseline) {
    DRIFTD_CO_CHECK(co_await commit(std::move(rows.front()), std::move(judgement), "mass deletion"));
  }
  deletions_.ask(id.id, observed, held);
  co_return transitions;
}

std::vector<std::string> Ledger::former_kinds() const {
  std::set<std::string> stored;
  for (const auto& [kind, value] : row_.established) stored.insert(kind);
  for (const auto& kind : index_.kinds()) {
    if (index_.present(kind) > 0) stored.insert(kind);
  }
  std::vector<std::string> out;
  for (const auto& kind : stored) {
    const bool described =
        info_ == nullptr || std::find(info_->kinds.begin(), info_->kinds.end(), kind) != info_->kinds.end();
    if (!described && !core::is_own_kind(kind) && kind != core::kRegistration) out.push_back(kind);
  }
  return out;
}

Task<Status> Ledger::forget_kind(std::string kind) {
  constexpr std::int64_t kAtOnce = 1'000;
  bool more = true;
  while (more) {
    DRIFTD_CO_TRY(more, co_await context_->store.forget_kind(row_.uid, kind, kAtOnce));
  }
  index_.erase_kind(kind);
  std::erase_if(restless_, [&](const core::ResourceId& id) { return id.kind == kind; });
  row_.established.erase(kind);
  generations_.clear();
  co_return Status{};
}

Task<Result<std::optional<core::BackendRow>>> Ledger::without_finished_deletions(std::string kind, std::uint32_t run) {
  std::vector<std::string> candidates;
  if (deletions_.by_digest(kind)) {
    DRIFTD_CO_TRY(const auto still, co_await missing(kind, run, false));
    candidates = to_names(still);
  }
  const auto is_missing = [&](const std::string& name) {
    const Index::Entry* entry = index_.find({kind, name});
    return entry != nullptr && entry->present && entry->run != run;
  };
  auto notes = deletions_.without_finished(row_.notes, kind, candidates, is_missing);
  if (!notes) co_return std::nullopt;
  core::BackendRow out = row_;
  out.notes = std::move(*notes);
  co_return out;
}

std::optional<core::BackendRow> Ledger::without_finished_deletions(
    const std::string& kind, const std::function<bool(const std::string&)>& missing) {
  auto notes = deletions_.without_finished(row_.notes, kind, {}, missing);
  if (!notes) return std::nullopt;
  core::BackendRow out = row_;
  out.notes = std::move(*notes);
  return out;
}

std::vector<core::ResourceId> Ledger::gone_to_judge(const std::string& kind) {
  std::vector<core::ResourceId> out;
  for (const auto& id : gone_open_) {
    const Index::Entry* known = id.kind == kind ? index_.find(id) : nullptr;
    if (known == nullptr) continue;
    if (known->attention || known->generation != static_cast<std::uint32_t>(generation(id))) out.push_back(id);
  }
  return out;
}

Task<Result<std::vector<core::ResourceId>>> Ledger::missing(std::string kind, std::uint32_t run, bool only_open) {
  DRIFTD_CO_TRY(const auto entries, co_await context_->store.index(row_.uid));
  std::vector<core::ResourceId> out;
  for (const auto& entry : entries) {
    if (entry.id.kind != kind) continue;
    const Index::Entry* known = index_.find(entry.id);
    if (known == nullptr || known->run == run) continue;
    if (only_open ? known->open && !known->attention : known->present) out.push_back(entry.id);
  }
  co_return out;
}

Task<Result<std::vector<core::ResourceId>>> Ledger::with_baseline(std::vector<core::ResourceId> ids) const {
  std::vector<core::ResourceId> out;
  for (std::size_t from = 0; from < ids.size(); from += kLoadAtOnce) {
    const auto to = std::min(ids.size(), from + kLoadAtOnce);
    std::vector<core::ResourceId> some(ids.begin() + static_cast<std::ptrdiff_t>(from),
                                       ids.begin() + static_cast<std::ptrdiff_t>(to));
    DRIFTD_CO_TRY(const auto rows, co_await context_->store.load(row_.uid, std::move(some)));
    for (const auto& row : rows) {
      if (row.baseline) out.push_back(row.id);
    }
  }
  co_return out;
}

}  // namespace driftd::engine
