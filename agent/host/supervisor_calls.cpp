// SPDX-License-Identifier: Apache-2.0
// Calls and frames of a supervisor: deadlines, credit, permits, logs.
#include <fmt/format.h>
#include <cmath>

#include "base/log.hpp"
#include "host/supervisor.hpp"
#include "host/untrusted_input.hpp"
#include "ipc/limits.hpp"

namespace driftd::host {
namespace {

constexpr std::uint64_t kCreditStep = 128u << 10;  // bytes that are given back together

}  // namespace

std::shared_ptr<Call> Supervisor::begin(ipc::FrameType type, std::string payload, Steady::time_point deadline) {
  auto call = std::make_shared<Call>(options_.core, next_call_++, type, deadline);
  call->wake.expires_at(asio::steady_timer::time_point::max());
  if (!channel_) {
    call->done = fail(Code::unavailable, "worker " + (status_.last_exit.empty() ? "not running" : status_.last_exit));
    return call;
  }
  if (payload.size() > ipc::kMaxPayload) {
    call->done = fail(Code::invalid, fmt::format("{}: the request has {} bytes, at most {}", ipc::call_name(type),
                                                 payload.size(), ipc::kMaxPayload));
    return call;
  }
  if (worker_) call->cpu_at_begin = worker_->usage().cpu;
  calls_[call->id] = call;
  channel_->send(type, call->id, std::move(payload));
  arm(*call);
  return call;
}

void Supervisor::arm(Call& call) {
  if (call.deadline == Steady::time_point::max()) return;
  call.limit.expires_at(call.deadline);
  call.limit.async_wait([weak = weak_from_this(), id = call.id](const boost::system::error_code& stopped) {
    const auto self = weak.lock();
    if (stopped || !self) return;
    if (const auto found = self->calls_.find(id); found != self->calls_.end()) self->expire(*found->second);
  });
}

/// Cancels the call at its deadline, and kills the worker after the grace time.
void Supervisor::expire(Call& call) {
  if (!call.cancelled) {
    note_overdue(call);
    cancel(call);
    return;
  }
  const std::string waited = render_seconds(std::chrono::round<std::chrono::milliseconds>(call.waited));
  kill(call.stopped_early ? fmt::format("no answer within {} of a cancel: killed in {}", render_seconds(options_.grace),
                                        ipc::call_name(call.type))
                          : fmt::format("no answer within {}: killed in {}", waited, ipc::call_name(call.type)));
}

void Supervisor::cancel(Call& call) {
  if (call.cancelled || call.done) return;
  call.cancelled = true;
  call.stopped_early = Steady::now() < call.deadline;
  call.waited = std::max(call.deadline - call.begun, Steady::duration::zero());
  if (channel_) channel_->send(ipc::FrameType::cancel, call.id, {});
  call.deadline = Steady::now() + options_.grace;  // from now: the deadline may have been noticed late
  arm(call);
}

void Supervisor::abandon(Call& call) {
  call.abandoned = true;
  cancel(call);
  while (pop(call)) {
  }
}

std::optional<ipc::Frame> Supervisor::pop(Call& call) {
  std::optional<ipc::Frame> out;
  if (!call.queue.empty()) {
    out = std::move(call.queue.front());
    call.queue.pop_front();
    call.credit_to_return += out->payload.size() + ipc::kHeaderSize;
  }
  give_credit(call);
  return out;
}

void Supervisor::give_credit(Call& call) {
  // A worker waits for credit only after it has used all of it, so the step is always reached then.
  if (call.credit_to_return >= kCreditStep && channel_ && !call.done) {
    channel_->send(ipc::FrameType::credit, call.id, encode(ipc::Credit{call.credit_to_return}));
    call.credit_used -= call.credit_to_return;
    call.credit_to_return = 0;
  }
}

void Supervisor::on_frame(ipc::Frame frame) {
  const auto found = calls_.find(frame.call);
  if (found == calls_.end()) return kill_misbehaving("sent a frame of a call that is not running");
  const auto call = found->second;
  switch (frame.type) {
    case ipc::FrameType::result:
      return on_result(*call, std::move(frame));
    case ipc::FrameType::log:
      return on_log(frame);
    case ipc::FrameType::permit:
      return on_permit(call, frame);
    case ipc::FrameType::metric:
      if (!charge_credit(*call, frame)) return;
      on_metric(frame);
      // Handled at once, so its credit does not wait for a page.
      call->credit_to_return += frame.payload.size() + ipc::kHeaderSize;
      return give_credit(*call);
    case ipc::FrameType::records:
    case ipc::FrameType::mark:
    case ipc::FrameType::diagnostic:
      if (charge_credit(*call, frame)) on_stream(*call, std::move(frame));
      return;
    default:
      return kill_misbehaving("sent a frame that only the agent sends");
  }
}

/// Returns false and kills the worker if it sends after its credit is used up; ActiveCall::send would have waited.
bool Supervisor::charge_credit(Call& call, const ipc::Frame& frame) {
  if (call.credit_used >= ipc::kCallCredit) {
    kill_misbehaving("sent more than its credit");
    return false;
  }
  call.credit_used += frame.payload.size() + ipc::kHeaderSize;
  return true;
}

void Supervisor::on_stream(Call& call, ipc::Frame frame) {
  const bool streams =
      call.type == ipc::FrameType::refresh || call.type == ipc::FrameType::read || call.type == ipc::FrameType::watch;
  if (!streams && frame.type != ipc::FrameType::diagnostic)
    return kill_misbehaving(fmt::format("sent records in {}", ipc::call_name(call.type)));
  const bool discarded = call.abandoned || call.type == ipc::FrameType::load || call.type == ipc::FrameType::open;
  call.queue.push_back(std::move(frame));
  if (discarded) {
    while (pop(call)) {
    }
  }
  call.wake.cancel();
}

void Supervisor::on_result(Call& call, ipc::Frame frame) {
  auto result = ipc::decode<ipc::CallResult>(frame.payload, ipc::kMaxReportedNames);
  if (!result)
    return kill_misbehaving(fmt::format("sent an answer to {} that cannot be decoded", ipc::call_name(call.type)));
  clean(*result, scrubber_);
  record_result(call, *result);
  call.done = std::move(result);
  call.limit.cancel();
  call.wake.cancel();
  calls_.erase(call.id);
}

/// Our own code sends no more than 500 metrics a second, so a flood means that the plugin has taken the worker over.
void Supervisor::on_metric(const ipc::Frame& frame) {
  if (!metric_flood_.try_take(Steady::now())) return kill_misbehaving("flooded the metrics");
  const auto gauge = ipc::decode<ipc::Gauge>(frame.payload);
  if (!gauge || !metrics_.contains(gauge->name))
    return kill_misbehaving("sent a metric that describe does not declare");
  char* end = nullptr;
  const double value = std::strtod(gauge->value.c_str(), &end);
  if (gauge->value.empty() || *end != '\0') return kill_misbehaving("sent a metric whose value is not a number");
  if (std::isfinite(value)) status_.gauges[gauge->name] = value;
}

/// Our own code sends no more than 20 lines a second. Some more are dropped; a flood means that the plugin has taken
/// the worker over.
void Supervisor::on_log(const ipc::Frame& frame) {
  const auto now = Steady::now();
  if (!log_flood_.try_take(now)) return kill_misbehaving("flooded the log");
  if (!log_rate_.try_take(now)) {
    ++lines_dropped_;
    return;
  }
  const auto line = ipc::decode<ipc::LogLine>(frame.payload);
  if (!line) return kill_misbehaving("sent a log line that cannot be decoded");
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                   spdlog::level::err};
  const auto level = kLevels[std::clamp(line->level, 0, 3)];
  const auto dropped = std::exchange(lines_dropped_, 0);
  log::room("host").log(level, "[{}] {}{}", spec_.session.backend, scrubber_.one_line(line->text, ipc::kMaxText),
                        dropped > 0 ? fmt::format(" ({} lines before this one dropped)", dropped) : "");
}

void Supervisor::on_permit(const std::shared_ptr<Call>& call, const ipc::Frame& frame) {
  const auto request = ipc::decode<ipc::PermitRequest>(frame.payload);
  if (!request || call->asks_permit || request->bucket.size() > ipc::kMaxName)
    return kill_misbehaving("asked for a permit out of turn");
  const auto now = Steady::now();
  if (rates_.size() >= ipc::kMaxRateLimiters)
    std::erase_if(rates_, [now](const auto& rate) { return rate.second.full(now); });
  if (rates_.size() >= ipc::kMaxRateLimiters)
    return kill_misbehaving(fmt::format("used more than {} buckets of permits", ipc::kMaxRateLimiters));
  auto timer =
      std::make_shared<asio::steady_timer>(options_.core, rates_[request->bucket].reserve(request->tokens, now));
  auto* raw = timer.get();
  call->asks_permit = true;
  raw->async_wait([timer = std::move(timer), weak = std::weak_ptr(channel_), call,
                   ticket = request->ticket](const boost::system::error_code&) {
    call->asks_permit = false;
    if (const auto channel = weak.lock())
      channel->send(ipc::FrameType::permitted, call->id, encode(ipc::PermitAnswer{ticket, Code::ok}));
  });
}

void Supervisor::kill_misbehaving(const std::string& what) {
  if (killed_) return;
  ++status_.misuses["protocol"];
  status_.last_misuse = what;
  report("misbehaved", what);
  kill(what + ": killed");
}

/// Kills the worker and closes its socket, so that nothing it still sent is handled and no child of it keeps the socket
/// open.
void Supervisor::kill(std::string reason) {
  killed_ = true;
  if (kill_reason_.empty()) kill_reason_ = std::move(reason);
  if (worker_) worker_->kill();
  if (channel_) channel_->close();
}

std::string Supervisor::in_flight() const {
  std::string out;
  for (const auto& [id, call] : calls_) {
    const std::string name(ipc::call_name(call->type));
    if (call->type != ipc::FrameType::watch && out.find(name) == std::string::npos)
      out += (out.empty() ? "" : ", ") + name;
  }
  if (!out.empty() || calls_.empty()) return out;
  return "watch";
}

void Supervisor::fail_calls(const Error& error) {
  const auto calls = std::exchange(calls_, {});
  for (const auto& [id, call] : calls) {
    call->done = fail(error);
    call->limit.cancel();
    call->wake.cancel();
  }
}

}  // namespace driftd::host
