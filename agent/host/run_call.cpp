// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/redirect_error.hpp>
#include <limits>

#include "host/session.hpp"
#include "host/untrusted_input.hpp"
#include "ipc/limits.hpp"

namespace driftd::host {
namespace {

/// Returns the maximum that a plugin may send in this call. A watch has no maximum.
PageBuilder::Bounds bounds_of(const Supervisor& supervisor, const Call& call) {
  constexpr auto kEndless = std::numeric_limits<std::uint64_t>::max();
  if (call.type == ipc::FrameType::watch) return {kEndless, kEndless, kEndless};
  const auto& budgets = supervisor.spec().budgets;
  return {budgets.records, budgets.bytes, ipc::kMaxDiagnostics + call.asked};
}

Task<Status> deliver(core::PageHandler on_page, std::vector<core::RecordPage> pages) {
  if (!on_page) co_return Status{};
  for (auto& page : pages) {
    const Status taken = co_await on_page(std::move(page));
    if (!taken) co_return taken;
  }
  co_return Status{};
}

}  // namespace

Task<void> wait_for_more(std::shared_ptr<Call> call) {
  boost::system::error_code woken;  // each frame and the result cancel the timer
  co_await call->wake.async_wait(asio::redirect_error(asio::use_awaitable, woken));
}

ipc::CallResult with_deadline_code(const Call& call, ipc::CallResult result) {
  const bool late = call.cancelled && !call.stopped_early && result.code == Code::cancelled;
  if (late) result.code = Code::deadline;
  return result;
}

Task<Result<ipc::CallResult>> run_call(std::shared_ptr<Supervisor> supervisor, std::shared_ptr<Call> call,
                                       core::PageHandler on_page) {
  const CallGuard guard(supervisor, call);
  PageBuilder builder(supervisor->described(), supervisor->scrubber(), bounds_of(*supervisor, *call));
  for (bool last = false; !last;) {
    std::vector<core::RecordPage> ready;
    while (auto frame = supervisor->pop(*call)) {
      const Status sound = builder.add(*frame, ready);
      if (!sound) supervisor->kill_misbehaving(sound.error().message);
      if (!sound) co_return fail(Code::unavailable, "worker " + sound.error().message + ": killed");
      if (!ready.empty()) break;  // no further credit until the page has been handled
    }
    last = call->done.has_value() && call->queue.empty() && ready.empty();
    if (last) builder.finish(ready);
    if (call->type == ipc::FrameType::watch) builder.cut(ready);
    const bool idle = ready.empty() && !last;
    const Status taken = co_await deliver(on_page, std::move(ready));
    DRIFTD_CO_CHECK(taken);
    if (idle && !call->done && call->queue.empty()) co_await wait_for_more(call);
  }
  if (!*call->done) co_return fail(call->done->error());
  co_return with_deadline_code(*call, **call->done);
}

}  // namespace driftd::host
