// SPDX-License-Identifier: Apache-2.0
#include "sinks/plugin/batches.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/fatal.hpp"

namespace driftd::sinks {
namespace {

using Outcome = core::Attempt::Outcome;

Outcome outcome_of(Code code) {
  switch (code) {
    case Code::unavailable:
    case Code::unauthenticated:
    case Code::denied:
    case Code::throttled:
    case Code::cancelled:  // only a stop of the session cancels
      return Outcome::retry_sink;
    case Code::deadline:
      return Outcome::refused;
    default:
      return Outcome::retry_event;
  }
}

}  // namespace

core::Attempt attempt_without_verdict(const core::DeliverEnd& end) {
  if (end.how != core::DeliverEnd::How::returned)
    return {Outcome::retry_sink, end.status ? std::string() : end.status.error().message, 0};
  if (end.status) return {Outcome::retry_event, "the plugin answered without a verdict about this event", 0};
  return {outcome_of(end.status.error().code), end.status.error().message, end.status.error().retry_after_ms};
}

void Batches::use(std::shared_ptr<core::Session> session, BatchBounds bounds) {
  session_ = std::move(session);
  bounds_ = std::move(bounds);
  for (auto& item : std::exchange(waiting_, {})) {
    if (item.event.content_type == bounds_.content_type) {
      waiting_.push_back(std::move(item));
    } else {
      item.answered({Outcome::retry_sink, "the plugin was upgraded and takes another content type", 0});
    }
  }
  send_soon();
}

void Batches::add(core::PluginEvent event, Answered answered) {
  std::string id = event.id;
  waiting_.push_back({std::move(id), std::move(event), std::move(answered)});
  send_soon();
}

/// Later, because the runner of the sink gives it one event after the other in the same turn of the core thread.
void Batches::send_soon() {
  if (std::exchange(woken_, true)) return;
  asio::post(core_, [self = shared_from_this()] {
    self->woken_ = false;
    self->send_waiting();
  });
}

bool Batches::suspect_waits() const {
  if (suspects_.size() == 0) return false;
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [this](const Item& item) { return suspects_.contains(item.id); });
}

void Batches::send_waiting() {
  while (!waiting_.empty() && calls_ < std::max<std::size_t>(bounds_.calls, 1) && !alone_) {
    const bool alone = suspect_waits();
    if (alone && calls_ > 0) return;  // the end of each call comes back here
    auto items = std::make_shared<Items>(take());
    ++calls_;
    alone_ = alone;
    asio::co_spawn(core_, send(shared_from_this(), std::move(items), alone), fatal);
  }
}

/// Returns what the next call carries: the first suspect, or the first of the others. Needs an item that waits.
Batches::Items Batches::take() {
  Items out;
  const auto suspect =
      std::find_if(waiting_.begin(), waiting_.end(), [this](const Item& item) { return suspects_.contains(item.id); });
  if (suspect != waiting_.end()) {
    out.push_back(std::move(*suspect));
    waiting_.erase(suspect);
    return out;
  }
  std::size_t bytes = 0;
  while (!waiting_.empty() && out.size() < std::max<std::size_t>(bounds_.events, 1)) {
    bytes += waiting_.front().event.body.size();
    if (!out.empty() && bytes > bounds_.bytes) break;
    out.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return out;
}

Task<void> Batches::send(std::shared_ptr<Batches> self, std::shared_ptr<Items> items, bool alone) {
  core::DeliverRequest request;
  request.timeout = self->bounds_.timeout;
  request.only_by = self->unflushed_.holder();
  for (auto& item : *items) request.events.push_back(std::move(item.event));
  const core::SettledHandler settled = [self, items](core::SettledEvent one) {
    if (one.index < items->size()) self->settle((*items)[one.index], std::move(one));
  };
  const auto session = self->session_;
  const core::DeliverEnd end = co_await session->deliver(std::move(request), settled);
  --self->calls_;
  if (alone) self->alone_ = false;
  const core::Attempt left = attempt_without_verdict(end);
  const bool endpoint_failed = end.how != core::DeliverEnd::How::lost && left.outcome == Outcome::retry_sink;
  self->answer_rest(*items, end, alone);
  if (endpoint_failed) self->answer_waiting(left);
  self->send_soon();
}

void Batches::settle(Item& item, core::SettledEvent settled) {
  if (!item.answered) return;
  const bool delivered = settled.attempt.outcome == Outcome::delivered;
  if (delivered && settled.worker != 0) unflushed_.delivered(settled.worker);
  if (delivered) suspects_.delivered();
  suspects_.settled(item.id);
  std::exchange(item.answered, nullptr)(std::move(settled.attempt));
}

void Batches::answer_waiting(const core::Attempt& failed) {
  for (auto& item : std::exchange(waiting_, {})) item.answered(failed);
}

void Batches::answer_rest(Items& items, const core::DeliverEnd& end, bool alone) {
  for (auto& item : items) {
    if (!item.answered) continue;
    core::Attempt attempt = attempt_without_verdict(end);
    const bool lost = end.how == core::DeliverEnd::How::lost;
    if (lost && suspects_.worker_lost(item.id, alone)) {
      attempt.outcome = Outcome::permanent;
      attempt.detail =
          "the plugin's worker ended each time it had this event alone, while others were delivered: " + attempt.detail;
    }
    if (end.how == core::DeliverEnd::How::returned) suspects_.settled(item.id);
    std::exchange(item.answered, nullptr)(std::move(attempt));
  }
}

}  // namespace driftd::sinks
