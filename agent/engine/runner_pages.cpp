// SPDX-License-Identifier: Apache-2.0
// What reaches one backend between two cycles: pages of its watch, and what sources report of its registration.
#include "base/log.hpp"
#include "engine/context.hpp"
#include "engine/cycle.hpp"
#include "engine/runner.hpp"
#include "engine/sources/registration_session.hpp"
#include "engine/sources/source_hub.hpp"
#include "engine/unregistration.hpp"

namespace driftd::engine {

Task<Status> Runner::judge_under_lock(core::RecordPage page, Moment before, Moment received) {
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  const auto status = co_await judge_page(std::move(page), before, received, true);
  if (!status) plan_.require_full();  // the provider has sent it, so by its cursor nothing changed
  co_return status;
}

/// Call it with the cycle mutex locked. `ready` is false while the page's kinds cannot be judged.
Task<Status> Runner::judge_page(core::RecordPage page, Moment before, Moment received, bool ready) {
  if (!ready || !identity_.is_accepted() || stopping_ || plan_.held_back()) {
    plan_.require_full();  // the next full cycle finds what is dropped here
    if (!identity_.is_waiting()) plan_.hint();
    co_return Status{};
  }
  // A source that lists registrations reports those that change, and only they count. Of another one, any change may.
  if (!page.records.empty() && !listed_registrations()) ask_discovery();
  Cycle one(context_, ledger_, *session_, run_);
  const auto status = co_await one.watch_page(std::move(page), before, received);
  if (one.left_out()) plan_.note_left_out();
  if (one.unconfirmed()) plan_.hint_full();
  // Dropped records are older than what a cycle has read. In case that is wrong (a clock, a server whose list lags
  // behind its watch), a full list checks it soon. A refresh with a cursor would not: the provider would answer
  // "unchanged" because it has already sent the change.
  if (one.dropped() > 0 || one.must_list_again()) plan_.list_again(received.mono);
  co_return status;
}

bool Runner::receive_report(RegistrationReport report, const std::string& registrar_uid) {
  const auto receipt = registration_.receive(std::move(report), registrar_uid);
  if (receipt.new_kind) plan_.hint_full();  // the next cycle lists it, which makes its baseline
  return receipt.first;
}

Task<Status> Runner::judge_report() {
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  core::RecordPage page = registration_.take_report();
  const Moment any;  // whenever the source read it, this is its newest report
  const auto judged = co_await judge_page(std::move(page), any, Moment::of(context_->clock), registration_.can_judge());
  if (!judged) plan_.require_full();  // a list has the report, and the provider's cursor says nothing about it
  DRIFTD_CO_CHECK(judged);
  const auto status = co_await registration_.persist_registrar();
  co_return status;
}

/// The next cycle discovers if that cannot be done now.
Task<void> Runner::discover_if_due() {
  if (context_->clock.mono() < discovery_.due()) co_return;
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  const bool ready = plan_.has_baseline() && noted_info_ != nullptr && !stopping_ && !plan_.held_back();
  if (!ready || !identity_.is_accepted()) {
    discovery_.leave_to_cycle();
    co_return;
  }
  co_await discovery_.run(false);
  Status done = co_await registration_.persist_registrar();
  if (const Status asked = co_await registration_.write_claim_drift(); done && !asked) done = asked;
  if (!done) log::room("engine").warn("{}: discovery: {}", ledger_.spec().name, done.error().message);
}

Task<Status> Runner::update_claim_drift() {
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  if (stopping_) co_return Status{};
  const auto status = co_await registration_.write_claim_drift();
  co_return status;
}

Task<Status> Runner::drop_registrar(std::string why) {
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  if (stopping_) co_return Status{};
  CommitExtras extras;
  extras.row = ledger_.row();
  extras.row->notes.erase(kRegistrarNote);
  extras.row->notes.erase(kRegistrarPlaceNote);
  DRIFTD_CO_CHECK(co_await ledger_.commit_extras(std::move(extras)));
  std::vector<core::ResourceId> ids(1, core::ResourceId{std::string(core::kRegistration), ledger_.spec().name});
  const auto status = co_await retire(*context_, ledger_, std::move(ids), std::move(why));
  co_return status;
}

Task<Status> Runner::reregister(core::BackendSpec spec) {
  const auto self = shared_from_this();
  const AsyncMutex::Guard held = co_await cycle_mutex_.lock();
  const auto status = co_await registration_.update(std::move(spec));
  co_return status;
}

}  // namespace driftd::engine
