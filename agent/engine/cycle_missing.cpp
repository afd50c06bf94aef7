// SPDX-License-Identifier: Apache-2.0
// Resources that a complete list lacks or that a watch called gone: held if too many are gone at once, else confirmed
// by a read.
#include <algorithm>
#include <iterator>
#include <set>

#include "core/scope.hpp"
#include "core/stand_in.hpp"
#include "engine/context.hpp"
#include "engine/cycle.hpp"
#include "engine/ledger.hpp"

namespace driftd::engine {
namespace {

constexpr std::size_t kReadAtOnce = 256;
constexpr std::chrono::seconds kReadDeadline{30};

}  // namespace

Task<Status> Cycle::confirm_missing() {
  // These counts stay valid: from here on, resources can only stop being missing.
  auto counts = ledger_.index().counts(run_);
  for (auto& [name, kind] : kinds_) {
    if (!kind.complete) continue;
    const auto status = co_await hold_or_confirm_missing(name, counts[name].missing > 0);
    if (!status) co_return status;
  }
  co_return Status{};
}

Task<Status> Cycle::hold_or_confirm_missing(std::string kind, bool some_missing) {
  Index::Count count;
  count.present = ledger_.index().present(kind);
  if (some_missing) count = ledger_.index().count(kind, run_);
  std::vector<core::ResourceId> gone;
  if (count.missing > 0) {
    DRIFTD_CO_TRY(gone, co_await ledger_.missing(kind, run_, false));
    if (ledger_.accepts_unknown(kind)) DRIFTD_CO_CHECK(co_await ledger_.find_accepted(kind, gone));
  }
  DRIFTD_CO_TRY(auto split,
                co_await hold_mass_deletion(kind, static_cast<std::size_t>(count.present), std::move(gone)));
  std::vector<core::ResourceId> nameless;  // no read can find these, so the complete list has to do
  std::copy_if(split.gone.begin(), split.gone.end(), std::back_inserter(nameless), core::is_stand_in);
  std::erase_if(split.gone, core::is_stand_in);
  if (!nameless.empty()) DRIFTD_CO_CHECK(co_await judge_gone(std::move(nameless), Moment::of(context_->clock)));
  DRIFTD_CO_CHECK(co_await confirm(std::move(split.gone), &kinds_[kind]));
  DRIFTD_CO_TRY(const std::size_t transitions, co_await ledger_.update_scope_drift(kind, std::move(split.held)));
  transitions_ += transitions;
  DRIFTD_CO_CHECK(co_await rejudge_gone(kind));
  DRIFTD_CO_CHECK(co_await confirm_declared_absent(kind));
  CommitExtras done;  // only resources that are still missing keep their approval
  DRIFTD_CO_TRY(done.row, co_await ledger_.without_finished_deletions(kind, run_));
  if (!done.row) co_return Status{};
  const auto status = co_await ledger_.commit_extras(std::move(done));
  co_return status;
}

/// Judges open drifts of absent resources again where that is due. This is safe because the list was complete.
Task<Status> Cycle::rejudge_gone(std::string kind) {
  const auto ids = ledger_.gone_to_judge(kind);
  if (ids.empty()) co_return Status{};
  std::vector<ResourceReading> gone;
  const Moment now = Moment::of(context_->clock);
  for (const auto& id : ids) gone.push_back({id, core::Absent{now.wall}, now.mono});
  CommitExtras none;
  const auto applied = co_await ledger_.apply(std::move(gone), std::move(none), applied_, run_, nullptr);
  if (!applied) co_return fail(applied.error());
  transitions_ += applied->transitions;
  co_return Status{};
}

Task<Status> Cycle::confirm(std::vector<core::ResourceId> ids, Kind* kind) {
  for (std::size_t at = 0; at < ids.size(); at += kReadAtOnce) {
    const auto end = std::min(ids.size(), at + kReadAtOnce);
    std::vector<core::ResourceId> some(ids.begin() + static_cast<std::ptrdiff_t>(at),
                                       ids.begin() + static_cast<std::ptrdiff_t>(end));
    const Moment sent = Moment::of(context_->clock);
    auto answer = co_await session_.read(some, kReadDeadline);
    if (!answer) {
      unconfirmed_ = true;
      add_once(kind->reasons, "a missing resource could not be confirmed: " + answer.error().message);
      co_return Status{};
    }
    for (const auto& d : answer->diagnostics) {
      if (d.code != Code::not_found) add_once(kind->reasons, sentence(d));
    }
    note_dispute(some, *answer, kind);
    if (!answer->not_found.empty() && !(co_await is_the_same_system(kind))) co_return Status{};
    DRIFTD_CO_CHECK(co_await judge_gone(std::move(answer->not_found), sent));
    CommitExtras also_none;
    std::vector<ResourceReading> found = to_readings(answer->found, sent);
    DRIFTD_CO_CHECK(co_await judge_records(std::move(found), std::move(also_none)));
  }
  co_return Status{};
}

void Cycle::note_dispute(const std::vector<core::ResourceId>& ids, const core::ReadOutcome& answer, Kind* kind) {
  std::set<core::ResourceId> silent(ids.begin(), ids.end());
  for (const auto& gone : answer.not_found) silent.erase(gone);
  for (const auto& found : answer.found) silent.erase(found.id);
  // What a watch called gone and a read finds is there again, which the watch tells, too.
  list_again_ = list_again_ || !silent.empty() || (!in_watch_ && !answer.found.empty());
  if (silent.empty() || !answer.diagnostics.empty()) return;
  add_once(kind->reasons, render(*silent.begin()) + (silent.size() > 1 ? " and others are" : " is") +
                              " missing from the list, and no read answered whether it is gone");
}

/// Called after a read found something gone. A failover may have put another system behind the endpoint since the cycle
/// began, and a resource is not gone because another system lacks it.
Task<bool> Cycle::is_the_same_system(Kind* kind) {
  const std::string accepted = ledger_.row().system_identity;
  if (accepted.empty()) co_return true;
  const auto probed = co_await session_.health();
  if (probed && probed->system_identity == accepted) co_return true;
  unconfirmed_ = true;
  std::string says = "it does not say which one it is";
  if (!probed) says = probed.error().message;
  if (probed && !probed->system_identity.empty()) says = "it is " + probed->system_identity;
  add_once(kind->reasons, "a missing resource could not be confirmed: another system may have answered (accepted: " +
                              accepted + "; " + says + ")");
  co_return false;
}

Task<Status> Cycle::judge_gone(std::vector<core::ResourceId> ids, Moment sent) {
  std::vector<ResourceReading> gone;
  for (const auto& id : ids) gone.push_back({id, core::Absent{sent.wall}, sent.mono});
  CommitExtras none;
  const auto applied =
      co_await ledger_.apply(last_of_each(std::move(gone)), std::move(none), applied_, run_, &session_);
  if (!applied) co_return fail(applied.error());
  transitions_ += applied->transitions;
  dropped_ += applied->dropped;
  co_return Status{};
}

}  // namespace driftd::engine
