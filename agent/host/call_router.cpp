// SPDX-License-Identifier: Apache-2.0
#include "host/call_router.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "host/seconds.hpp"
#include "ipc/limits.hpp"

namespace driftd::host {
namespace {

constexpr std::uint64_t kCreditStep = 128u << 10;  // bytes that are given back together

bool is_watch(const Call& call) { return call.type == ipc::FrameType::watch; }

}  // namespace

std::shared_ptr<Call> CallRouter::make(ipc::FrameType type, Steady::time_point deadline) {
  auto call = std::make_shared<Call>(core_, next_call_++, type, deadline);
  call->wake.expires_at(asio::steady_timer::time_point::max());
  return call;
}

std::shared_ptr<Call> CallRouter::refuse(ipc::FrameType type, Error why) {
  auto call = make(type, Steady::time_point::max());
  call->done = fail(std::move(why));
  return call;
}

std::shared_ptr<Call> CallRouter::begin(ipc::FrameType type, std::string payload, Steady::time_point deadline,
                                        std::chrono::milliseconds cpu) {
  if (!channel_) return refuse(type, Error{Code::unavailable, "worker not running"});
  const std::size_t most = type == ipc::FrameType::deliver ? ipc::kMaxDelivery : ipc::kMaxPayload;
  if (payload.size() > most) {
    return refuse(type, Error{Code::invalid, fmt::format("{}: the request has {} bytes, at most {}",
                                                         ipc::call_name(type), payload.size(), most)});
  }
  const auto call = make(type, deadline);
  call->cpu_at_begin = cpu;
  calls_[call->id] = call;
  send_call(*call, std::move(payload));
  arm(*call);
  return call;
}

/// Sends a call in one frame; what is too long for one comes before it in parts.
void CallRouter::send_call(const Call& call, std::string payload) {
  std::size_t at = 0;
  for (; payload.size() - at > ipc::kMaxPayload; at += ipc::kMaxPayload)
    channel_->send(ipc::FrameType::part, call.id, payload.substr(at, ipc::kMaxPayload));
  channel_->send(call.type, call.id, at == 0 ? std::move(payload) : payload.substr(at));
}

void CallRouter::arm(Call& call) {
  if (call.deadline == Steady::time_point::max()) return;
  call.limit.expires_at(call.deadline);
  call.limit.async_wait([weak = weak_from_this(), id = call.id](const boost::system::error_code& stopped) {
    const auto self = weak.lock();
    if (stopped || !self) return;
    if (const auto call = self->find(id)) self->expire(*call);
  });
}

/// Cancels the call at its deadline, and has the worker killed after the grace time.
void CallRouter::expire(Call& call) {
  if (!call.cancelled) {
    handlers_.overdue(call);
    cancel(call);
    return;
  }
  const std::string waited = render_seconds(std::chrono::round<std::chrono::milliseconds>(call.waited));
  handlers_.kill(call.stopped_early
                     ? fmt::format("no answer within {} of a cancel: killed in {}", render_seconds(grace_),
                                   ipc::call_name(call.type))
                     : fmt::format("no answer within {}: killed in {}", waited, ipc::call_name(call.type)));
}

void CallRouter::cancel(Call& call) {
  if (call.cancelled || call.done) return;
  call.cancelled = true;
  call.stopped_early = Steady::now() < call.deadline;
  call.waited = std::max(call.deadline - call.begun, Steady::duration::zero());
  if (channel_) channel_->send(ipc::FrameType::cancel, call.id, {});
  call.deadline = Steady::now() + grace_;  // from now: the deadline may have been noticed late
  arm(call);
}

void CallRouter::cancel_all() {
  for (const auto& [id, call] : calls_) cancel(*call);
}

void CallRouter::cancel_watches() {
  for (const auto& [id, call] : calls_) {
    if (is_watch(*call)) cancel(*call);
  }
}

void CallRouter::abandon(Call& call) {
  call.abandoned = true;
  cancel(call);
  while (pop(call)) {
  }
}

std::optional<ipc::Frame> CallRouter::pop(Call& call) {
  std::optional<ipc::Frame> out;
  if (!call.queue.empty()) {
    out = std::move(call.queue.front());
    call.queue.pop_front();
    call.credit_to_return += out->payload.size() + ipc::kHeaderSize;
  }
  give_credit(call);
  return out;
}

void CallRouter::give_credit(Call& call) {
  // A worker waits for credit only after it has used all of it, so the step is always reached then.
  if (call.credit_to_return >= kCreditStep && channel_ && !call.done) {
    channel_->send(ipc::FrameType::credit, call.id, encode(ipc::Credit{call.credit_to_return}));
    call.credit_used -= call.credit_to_return;
    call.credit_to_return = 0;
  }
}

std::shared_ptr<Call> CallRouter::find(std::uint64_t id) const {
  const auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : found->second;
}

Status CallRouter::charge_credit(Call& call, const ipc::Frame& frame) {
  if (call.credit_used >= ipc::kCallCredit) return fail(Code::invalid, "sent more than its credit");
  call.credit_used += frame.payload.size() + ipc::kHeaderSize;
  return {};
}

void CallRouter::return_credit(Call& call, const ipc::Frame& frame) {
  call.credit_to_return += frame.payload.size() + ipc::kHeaderSize;
  give_credit(call);
}

Status CallRouter::enqueue(Call& call, ipc::Frame frame) {
  const bool streams = call.type == ipc::FrameType::refresh || call.type == ipc::FrameType::read || is_watch(call);
  if (!streams && frame.type != ipc::FrameType::diagnostic)
    return fail(Code::invalid, fmt::format("sent records in {}", ipc::call_name(call.type)));
  const bool discarded = call.abandoned || call.type == ipc::FrameType::load || call.type == ipc::FrameType::open;
  call.queue.push_back(std::move(frame));
  if (discarded) {
    while (pop(call)) {
    }
  }
  call.wake.cancel();
  return {};
}

Status CallRouter::enqueue_settled(Call& call, std::string payload) {
  if (call.type != ipc::FrameType::deliver)
    return fail(Code::invalid, fmt::format("sent verdicts in {}", ipc::call_name(call.type)));
  call.settled_bytes += payload.size();
  if (++call.settled_frames > call.asked || call.settled_bytes > ipc::kMaxVerdictBytes)
    return fail(Code::invalid, "sent more verdicts than a batch has events");
  if (!call.abandoned) call.settled.push_back(std::move(payload));
  call.wake.cancel();
  return {};
}

void CallRouter::finish(Call& call, ipc::CallResult result) {
  call.done = std::move(result);
  call.limit.cancel();
  call.wake.cancel();
  calls_.erase(call.id);
}

void CallRouter::fail_all(const Error& error) {
  const auto calls = std::exchange(calls_, {});
  for (const auto& [id, call] : calls) {
    call->done = fail(error);
    call->limit.cancel();
    call->wake.cancel();
  }
}

bool CallRouter::only_watches() const {
  return std::all_of(calls_.begin(), calls_.end(), [](const auto& one) { return is_watch(*one.second); });
}

std::string CallRouter::render_running() const {
  std::string out;
  for (const auto& [id, call] : calls_) {
    const std::string name(ipc::call_name(call->type));
    if (!is_watch(*call) && out.find(name) == std::string::npos) out += (out.empty() ? "" : ", ") + name;
  }
  if (!out.empty() || calls_.empty()) return out;
  return "watch";
}

}  // namespace driftd::host
