// SPDX-License-Identifier: Apache-2.0
// Calls of a sink plugin: deliver and flush. Its probe is the health call.
#include <algorithm>

#include "host/session.hpp"
#include "host/untrusted_input.hpp"
#include "ipc/limits.hpp"
#include "ipc/sink_messages.hpp"

namespace driftd::host {
namespace {

const core::PageHandler kNoPages;

std::int64_t nanos_of(Steady::time_point at) { return at.time_since_epoch() / std::chrono::nanoseconds(1); }

Error worker_ended() {
  return {Code::unavailable, "the plugin's worker ended before it had flushed what it delivered"};
}

/// The verdicts of one deliver, as the worker sends them.
struct Verdicts {
  core::SettledHandler to;
  std::uint64_t worker = 0;      ///< SettledEvent::worker
  std::vector<bool> settled{};   ///< by event
  bool endpoint_failed = false;  ///< one of them is about the endpoint
};

/// Passes on the verdicts of one frame. Returns `invalid` if a worker of ours never sends it.
Status take_verdicts(Verdicts& verdicts, const std::string& payload, const ipc::Scrubber& scrubber) {
  auto given = ipc::decode<std::vector<ipc::Settlement>>(payload, ipc::kMaxBatchEvents);
  if (!given) return fail(Code::invalid, "sent verdicts that cannot be decoded");
  for (auto& one : *given) {
    if (one.index >= verdicts.settled.size() || verdicts.settled[one.index])
      return fail(Code::invalid, "sent a verdict about no event of its batch, or a second one");
    verdicts.settled[one.index] = true;
    core::Attempt attempt;
    attempt.outcome = one.outcome;
    attempt.detail = ipc::as_sentence(scrubber.printable(one.detail, ipc::kMaxText));
    attempt.retry_after_ms = std::clamp<std::int64_t>(one.retry_after_ms, 0, ipc::kMaxRetryAfter.count());
    using Outcome = core::Attempt::Outcome;
    const bool failed = attempt.outcome == Outcome::retry_sink || attempt.outcome == Outcome::refused;
    verdicts.endpoint_failed = verdicts.endpoint_failed || failed;
    if (verdicts.to) verdicts.to({one.index, std::move(attempt), verdicts.worker});
  }
  return {};
}

/// Runs a deliver to its end.
Task<core::DeliverEnd> run_deliver(std::shared_ptr<Supervisor> supervisor, std::shared_ptr<Call> call,
                                   std::shared_ptr<Verdicts> verdicts) {
  using How = core::DeliverEnd::How;
  const CallGuard guard(supervisor, call);
  for (;;) {
    while (supervisor->pop(*call)) {  // diagnostics: the last one is the message of the result
    }
    while (!call->settled.empty()) {
      const std::string payload = std::move(call->settled.front());
      call->settled.pop_front();
      const Status sound = take_verdicts(*verdicts, payload, supervisor->scrubber());
      if (sound) continue;
      supervisor->kill_misbehaving(sound.error().message);
      co_return core::DeliverEnd{How::lost, fail(Code::unavailable, "worker " + sound.error().message + ": killed")};
    }
    if (call->done) break;
    co_await wait_for_more(call);
  }
  if (!*call->done) co_return core::DeliverEnd{How::lost, fail(call->done->error())};
  const ipc::CallResult result = with_deadline_code(*call, **call->done);
  if (result.code == Code::ok) co_return core::DeliverEnd{How::returned, Status{}};
  co_return core::DeliverEnd{How::returned, fail(Error{result.code, result.message, result.retry_after_ms})};
}

/// Returns false if these events were gathered for another version of the plugin, which asked for another content type
/// or for more of them in one batch.
bool fits(const core::ProviderInfo* info, const std::vector<core::PluginEvent>& events) {
  if (info == nullptr || !info->sink) return true;
  const core::SinkPluginInfo& sink = *info->sink;
  std::size_t bytes = 0;
  for (const auto& event : events) {
    if (event.content_type != sink.content_type) return false;
    bytes += event.body.size();
  }
  return events.size() <= sink.max_events && (events.size() == 1 || bytes <= sink.max_bytes);
}

}  // namespace

Task<core::DeliverEnd> SupervisedSession::deliver(core::DeliverRequest request, core::SettledHandler on_settled) {
  using How = core::DeliverEnd::How;
  const auto self = shared_from_this();  // the call may outlive its caller's reference to the session
  const auto fits_worker = [this, &request] { return request.only_by == 0 || request.only_by == worker(); };
  if (!fits_worker()) co_return core::DeliverEnd{How::not_begun, fail(worker_ended())};
  auto supervisor = supervisor_;  // the only worker that may take it takes calls, or it ends: it is not waited for
  if (request.only_by == 0) {
    const auto ready_supervisor = co_await ready(Steady::now() + request.timeout);
    if (!ready_supervisor) co_return core::DeliverEnd{How::not_begun, fail(ready_supervisor.error())};
    supervisor = *ready_supervisor;
  }
  if (!fits(supervisor->described().get(), request.events)) {
    Error upgraded{Code::unavailable, "the plugin was upgraded, and takes other batches"};
    co_return core::DeliverEnd{How::not_begun, fail(std::move(upgraded))};
  }
  const auto deadline = Steady::now() + request.timeout;
  const std::size_t events = request.events.size();
  const ipc::DeliverCall asked{nanos_of(deadline), std::move(request.events)};
  const auto call = supervisor->begin(ipc::FrameType::deliver, encode(asked), deadline);
  if (call->done) co_return core::DeliverEnd{How::not_begun, fail(call->done->error())};
  call->asked = events;
  const auto verdicts = std::make_shared<Verdicts>();
  verdicts->to = std::move(on_settled);
  const auto& described = supervisor->described();
  if (described && described->sink && described->sink->has_flush) verdicts->worker = supervisor->worker_number();
  verdicts->settled.resize(events, false);
  core::DeliverEnd end = co_await run_deliver(supervisor, call, verdicts);
  if (end.how == How::returned && end.status && supervisor == supervisor_) fallback_.reset();
  const bool failed = !end.status || verdicts->endpoint_failed;
  if (end.how != How::returned || !failed) co_return end;
  // A file of the settings that was replaced by rename is not seen in the jail: the next worker sees it.
  Error why = end.status ? Error{Code::unavailable, "the endpoint failed"} : end.status.error();
  co_await Supervisor::check_replaced_paths(supervisor, std::move(why));
  co_return end;
}

/// Does not wait for ready(): the worker that must flush takes calls, or it ends and another one cannot flush for it.
Task<Status> SupervisedSession::flush(std::chrono::milliseconds timeout, std::uint64_t worker) {
  const auto self = shared_from_this();
  const auto supervisor = supervisor_;
  if (worker == 0 || this->worker() != worker) co_return fail(worker_ended());
  const auto deadline = Steady::now() + timeout;
  const auto call = supervisor->begin(ipc::FrameType::flush, encode(ipc::PlainCall{nanos_of(deadline), {}}), deadline);
  DRIFTD_CO_TRY(const ipc::CallResult result, co_await run_call(supervisor, call, kNoPages));
  if (result.code != Code::ok) co_return fail(Error{result.code, result.message, result.retry_after_ms});
  co_return Status{};
}

}  // namespace driftd::host
