// SPDX-License-Identifier: Apache-2.0
#include "engine/identity_check.hpp"

#include <algorithm>
#include <optional>

#include "core/ports/session.hpp"
#include "engine/context.hpp"
#include "engine/ledger.hpp"

namespace driftd::engine {
namespace {

/// The first failure that a refresh reports.
struct FirstFailure {
  std::optional<Error> cause;
  bool stopped = false;  ///< we ended the refresh: it did not fail
};

/// Notes the first failure in a page, which is why nothing can be judged. Ends the refresh at the first records,
/// because they are not wanted.
Task<Status> note_cause(std::shared_ptr<FirstFailure> failure, core::RecordPage page) {
  for (const auto& d : page.diagnostics) {
    const bool of_the_system = d.code == Code::unauthenticated || d.code == Code::denied || d.code == Code::unavailable;
    if (!of_the_system || failure->cause) continue;
    failure->cause = Error{d.code, d.text + (d.right.empty() ? std::string() : " (grant " + d.right + ")")};
  }
  if (page.records.empty() && page.marks.empty() && !failure->cause) co_return Status{};
  failure->stopped = true;
  co_return fail(Code::cancelled, "which system answers is not known: nothing of it is taken");
}

core::ResourceId identity_id(const Ledger& ledger) { return {"backend", ledger.spec().name}; }

}  // namespace

IdentityCheck::IdentityCheck(std::shared_ptr<Context> context, Ledger& ledger, core::Session& session)
    : context_(std::move(context)),
      ledger_(ledger),
      session_(session) {}

void IdentityCheck::load() {
  const Index::Entry* pseudo = ledger_.index().find(identity_id(ledger_));
  held_ = pseudo != nullptr && pseudo->open;
}

/// Notices another system between two cycles, so that pages of the watch are not judged as if they came from the
/// accepted one.
bool IdentityCheck::note_probe(const std::string& identity) {
  const std::string& accepted = ledger_.row().system_identity;
  if (identity.empty() || accepted.empty() || identity == accepted || held_ || answer_ == Answer::changed) return false;
  answer_ = Answer::changed;
  return true;
}

Task<Status> IdentityCheck::check(std::chrono::milliseconds deadline) {
  const auto probed = co_await session_.health();
  if (!probed || probed->system_identity.empty()) co_return co_await check_missing(probed, deadline);
  answer_ = Answer::accepted;
  if (probed->system_identity == ledger_.row().system_identity && !held_) co_return Status{};
  const auto status = co_await judge(probed->system_identity);
  co_return status;
}

Task<Status> IdentityCheck::judge(std::string identity) {
  const std::string accepted = ledger_.row().system_identity;
  std::vector<core::ResourceId> ids(1, identity_id(ledger_));
  DRIFTD_CO_TRY(auto rows, co_await context_->store.load(ledger_.row().uid, std::move(ids)));
  core::Judgement judgement =
      core::judge_identity(ledger_.row().uid, rows.front(), accepted, identity, context_->clock.wall());
  const auto open = judgement.next.open;
  if (!judgement.transitions.empty() || rows.front().revision == 0) {
    DRIFTD_CO_CHECK(co_await ledger_.commit(std::move(rows.front()), std::move(judgement), "system identity"));
  }
  // An ignored identity is accepted. Only a pending or rejected one holds the backend.
  held_ = std::any_of(open.begin(), open.end(), [](const auto& d) { return d.status != core::DriftStatus::ignored; });
  if (held_) {
    co_return fail(Code::conflict, "another system answers at this endpoint (identity " + identity + ", accepted " +
                                       accepted + "): nothing is judged until drift " + open.front().id +
                                       " is decided");
  }
  CommitExtras extras;
  extras.row = ledger_.row();
  extras.row->system_identity = identity;
  const auto status = co_await ledger_.commit_extras(std::move(extras));
  co_return status;
}

/// Handles a system that does not report its identity. It may not be the accepted one, so nothing is judged. Returns
/// the most specific error: a system that cannot be reached at all is down, denied or has a wrong password.
Task<Status> IdentityCheck::check_missing(Result<core::HealthReport> probed, std::chrono::milliseconds deadline) {
  const std::string accepted = ledger_.row().system_identity;
  const bool read = session_.status().state != "discovered";  // otherwise there is only its source's report
  const bool missing = !accepted.empty() && read;
  if (missing) answer_ = Answer::missing;
  if (!missing && answer_ == Answer::missing) answer_ = Answer::accepted;
  if (!held_ && !missing) co_return Status{};
  const std::string why = probed ? probed->reason : probed.error().message;
  Error error{Code::unavailable, "the system at this endpoint does not say which one it is (accepted: " + accepted +
                                     "): nothing is judged until it does" + (why.empty() ? why : "; " + why)};
  if (probed && probed->state == core::HealthReport::State::up) co_return fail(std::move(error));
  // A refresh may report the cause (no connection, a password, a right). Its records are not used.
  const auto failure = std::make_shared<FirstFailure>();
  core::RefreshRequest request;
  request.full = true;
  request.deadline = deadline;
  core::PageHandler handler = [failure](core::RecordPage page) { return note_cause(failure, std::move(page)); };
  const auto asked = co_await session_.refresh(std::move(request), std::move(handler));
  if (failure->cause) co_return fail(std::move(*failure->cause));
  if (!asked && !failure->stopped) co_return fail(asked.error());
  if (!probed) co_return fail(probed.error());
  co_return fail(why.empty() ? std::move(error) : Error{Code::unavailable, why});
}

}  // namespace driftd::engine
