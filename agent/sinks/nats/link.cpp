// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/link.hpp"

#include <boost/asio/post.hpp>
#include <vector>

namespace driftd::sinks {

std::shared_ptr<Inbox> Inbox::make(asio::any_io_executor core) {
  static std::mutex mutex;
  static std::vector<std::shared_ptr<Inbox>> all;
  const std::lock_guard lock(mutex);
  all.push_back(std::shared_ptr<Inbox>(new Inbox(std::move(core))));
  return all.back();
}

void Inbox::open(void* sink, OnAck handler) {
  sink_ = sink;
  handler_ = handler;
  const std::lock_guard lock(mutex_);
  open_ = true;
}

void Inbox::close() {
  sink_ = nullptr;
  for (const auto& [message, expected] : expected_) expected.flight->done.cancel();
  expected_.clear();
  const std::lock_guard lock(mutex_);
  open_ = false;
  core_ = {};  // the executor's context may end before the process does
}

void Inbox::expect(natsMsg* message, std::string id, std::shared_ptr<Flight> flight) {
  expected_[message] = {std::move(id), std::move(flight)};
}

void Inbox::forget(const std::shared_ptr<Flight>& flight) {
  std::erase_if(expected_, [&flight](const auto& item) { return item.second.flight == flight; });
}

void Inbox::on_ack(jsCtx*, natsMsg* message, jsPubAck* ack, jsPubAckErr* error, void* closure) {
  Ack out;
  if (ack != nullptr) {
    out.stream_seq = ack->Sequence;
    out.duplicate = ack->Duplicate;
  } else if (error != nullptr) {
    out.status = error->Err == NATS_OK ? NATS_ERR : error->Err;
    out.code = static_cast<int>(error->ErrCode);
    if (error->ErrText != nullptr) out.text = error->ErrText;
  }
  auto* inbox = static_cast<Inbox*>(closure);
  const std::lock_guard lock(inbox->mutex_);
  if (!inbox->open_) {
    natsMsg_Destroy(message);
    return;
  }
  asio::post(inbox->core_, [self = inbox->shared_from_this(), message, out] { self->deliver(message, out); });
}

void Inbox::deliver(natsMsg* message, const Ack& ack) {
  const Message owned(message);
  auto found = expected_.extract(message);
  if (found.empty() || sink_ == nullptr) return;  // it was given up meanwhile
  Flight& flight = *found.mapped().flight;
  handler_(sink_, found.mapped().id, flight, ack);
  if (--flight.left == 0) flight.done.cancel();
}

}  // namespace driftd::sinks
