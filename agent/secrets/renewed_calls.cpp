// SPDX-License-Identifier: Apache-2.0
// The calls of a RenewedSession: each is made on the session that is active when it begins.
#include "secrets/renewed_session.hpp"

namespace driftd::secrets {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMaxProbeWait{1'000};    // maximum wait of a health probe for the programs' first answers
constexpr milliseconds kMaxFirstWait{120'000};  // twice the longest time-out of a program (60 s): a first run has ended
                                                // by then
constexpr milliseconds kMaxLookWait{2'000};     // maximum wait of a cycle for the file system that holds a secret
constexpr milliseconds kMaxTakeoverWait{30'000};  // maximum wait of a cycle for the worker that is opened with a new
                                                  // secret

}  // namespace

/// Returns the active session. Waits, up to `max_wait`, while the programs run for the first time.
Task<Result<RenewedSession::Use>> RenewedSession::use(milliseconds max_wait) {
  const auto self = shared_from_this();
  const auto until = std::chrono::steady_clock::now() + max_wait;
  while (!inner_ && missing_.empty() && !stopping_) {
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) co_return fail(Code::unavailable, "its programs have not answered yet");
    co_await pause(left);
  }
  if (stopping_) co_return fail(Code::cancelled, "the session is stopped");
  if (!inner_) co_return fail(Code::unavailable, missing_);
  co_return Use(inner_);
}

/// Looks at the files and waits for a takeover, so that a cycle that finds a new secret uses it.
Task<void> RenewedSession::follow_files() {
  if (!files_) co_return;
  const auto self = shared_from_this();
  const auto left = [](std::chrono::steady_clock::time_point until) {
    return std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
  };
  look_at_files(false);
  const auto seen = std::chrono::steady_clock::now() + kMaxLookWait;
  while (looking_ && !stopping_ && left(seen).count() > 0) co_await pause(left(seen));
  report_hang();
  const auto served = std::chrono::steady_clock::now() + kMaxTakeoverWait;
  while (inner_ && renewing_ && !stopping_ && left(served).count() > 0) co_await pause(left(served));
}

void RenewedSession::note_refusal(const Error& error) {
  if (error.code == Code::unauthenticated || error.code == Code::denied) look_at_files(true);
}

Task<Result<std::shared_ptr<const core::ProviderInfo>>> RenewedSession::info() {
  retry_takeover();
  co_await follow_files();
  DRIFTD_CO_TRY(const Use held, co_await use(kMaxFirstWait));
  auto out = co_await held->info();
  co_return out;
}

Task<Result<core::RefreshOutcome>> RenewedSession::refresh(core::RefreshRequest request, core::PageHandler on_page) {
  co_await follow_files();
  DRIFTD_CO_TRY(const Use held, co_await use(kMaxFirstWait));
  auto out = co_await held->refresh(std::move(request), std::move(on_page));
  unhealthy_ = !out;
  if (!out) note_refusal(out.error());
  co_return out;
}

Task<Result<core::ReadOutcome>> RenewedSession::read(std::vector<core::ResourceId> ids, milliseconds deadline) {
  DRIFTD_CO_TRY(const Use held, co_await use(kMaxFirstWait));
  auto out = co_await held->read(std::move(ids), deadline);
  co_return out;
}

Task<Result<core::HealthReport>> RenewedSession::health() {
  look_at_files(false);
  DRIFTD_CO_TRY(const Use held, co_await use(kMaxProbeWait));
  auto out = co_await held->health();
  if (!out) unhealthy_ = true;
  if (!out) note_refusal(out.error());
  co_return out;
}

Task<Status> RenewedSession::watch(std::string cursor, core::PageHandler on_page) {
  const auto self = shared_from_this();
  std::shared_ptr<Inner> watched;
  {
    DRIFTD_CO_TRY(const Use held, co_await use(kMaxFirstWait));
    watched = held.inner;
  }
  const auto status = co_await watched->session->watch(std::move(cursor), std::move(on_page));
  if (watched != inner_ && !stopping_) co_return Status{};  // another session took over: the watch is started again
  co_return status;
}

Task<Result<std::vector<core::Demotion>>> RenewedSession::demote(core::ResourceId id,
                                                                 std::vector<core::Change> changes) {
  DRIFTD_CO_TRY(const Use held, co_await use(kMaxFirstWait));
  auto out = co_await held->demote(std::move(id), std::move(changes));
  co_return out;
}

Task<Result<core::DiscoverOutcome>> RenewedSession::discover() {
  DRIFTD_CO_TRY(const Use held, co_await use(kMaxFirstWait));
  auto out = co_await held->discover();
  co_return out;
}

Task<Result<std::string>> RenewedSession::upgrade(std::string kind, std::uint32_t from_revision, std::string body) {
  DRIFTD_CO_TRY(const Use held, co_await use(kMaxFirstWait));
  auto out = co_await held->upgrade(std::move(kind), from_revision, std::move(body));
  co_return out;
}

Task<Result<core::ApplyOutcome>> RenewedSession::apply(core::ApplyRequest request) {
  DRIFTD_CO_TRY(const Use held, co_await use(kMaxFirstWait));
  auto out = co_await held->apply(std::move(request));
  co_return out;
}

Status RenewedSession::resume() {
  if (inner_) return inner_->session->resume();
  return fail(Code::conflict, missing_.empty() ? "its programs have not answered yet" : missing_);
}

}  // namespace driftd::secrets
