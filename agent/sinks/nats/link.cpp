// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/link.hpp"

#include <boost/asio/post.hpp>
#include <vector>

#include "sinks/nats/failure_text.hpp"

namespace driftd::sinks {
namespace {

constexpr std::size_t kMaxDenied = 1'024;  // subjects that are remembered

}  // namespace

std::shared_ptr<Inbox> Inbox::make(asio::any_io_executor core) {
  static std::mutex mutex;
  // Never destroyed: the library's threads still call the inboxes while the process exits.
  static auto& all = *new std::vector<std::shared_ptr<Inbox>>;
  const std::lock_guard lock(mutex);
  all.push_back(std::shared_ptr<Inbox>(new Inbox(std::move(core))));
  return all.back();
}

void Inbox::open(Reader& reader) {
  reader_ = &reader;
  const std::lock_guard lock(mutex_);
  open_ = true;
}

void Inbox::close() {
  reader_ = nullptr;
  for (const auto& [message, expected] : expected_) {
    expected.flight->over = true;
    expected.flight->done.cancel();
  }
  expected_.clear();
  const std::lock_guard lock(mutex_);
  open_ = false;
  arrived_.clear();
  core_ = {};  // the executor's context may end before the process does
}

void Inbox::expect(natsMsg* message, Expected expected) { expected_[message] = std::move(expected); }

void Inbox::forget(const std::shared_ptr<Flight>& flight) {
  std::erase_if(expected_, [&flight](const auto& item) { return item.second.flight == flight; });
}

void Inbox::give_up(const core::Attempt& attempt) {
  for (const auto& [message, expected] : expected_) {
    expected.flight->attempt = attempt;
    expected.flight->over = true;
    expected.flight->done.cancel();  // the woken coroutine forgets the other messages of its flight
  }
}

bool Inbox::denied(const std::string& subject) const {
  const std::lock_guard lock(mutex_);
  return denied_.count(subject) != 0;
}

std::string Inbox::denied_reply() const {
  const std::lock_guard lock(mutex_);
  const auto found = denied_.lower_bound("_INBOX.");
  return found != denied_.end() && found->starts_with("_INBOX.") ? "_INBOX.>" : "";
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
  const bool posted = !inbox->arrived_.empty();
  inbox->arrived_.emplace_back(message, std::move(out));
  if (!posted) asio::post(inbox->core_, [self = inbox->shared_from_this()] { self->deliver_arrived(); });
}

void Inbox::watch(natsConnection* connection) {
  const bool connected = natsConnection_Status(connection) == NATS_CONN_STATUS_CONNECTED;
  const std::lock_guard lock(mutex_);
  watched_ = connection;
  ++changes_;
  closed_ = false;
  up_ = connected;
}

/// Called with mutex_ held, on the library's single thread for this, which reports changes in order.
void Inbox::changed(natsConnection* connection, bool up, bool closed) {
  if (connection != watched_) return;  // belongs to a replaced connection
  ++changes_;
  up_ = up;
  closed_ = closed;
}

void Inbox::on_disconnected(natsConnection* connection, void* closure) {
  auto* inbox = static_cast<Inbox*>(closure);
  const std::lock_guard lock(inbox->mutex_);
  inbox->changed(connection, false, false);
}

void Inbox::on_closed(natsConnection* connection, void* closure) {
  auto* inbox = static_cast<Inbox*>(closure);
  const std::lock_guard lock(inbox->mutex_);
  inbox->changed(connection, false, true);
}

void Inbox::on_reconnected(natsConnection* connection, void* closure) {
  auto* inbox = static_cast<Inbox*>(closure);
  const std::lock_guard lock(inbox->mutex_);
  inbox->changed(connection, true, false);
  inbox->denied_.clear();  // the permissions may have been granted meanwhile
  if (!inbox->open_) return;
  asio::post(inbox->core_, [self = inbox->shared_from_this()] {
    if (self->reader_ != nullptr) self->reader_->on_reconnected();
  });
}

/// Handles missing permissions only; any other error is returned by the call that fails. With a missing permission the
/// call just times out, and the server's text arrives here. (Without a handler the library would print to stderr.)
void Inbox::on_error(natsConnection*, natsSubscription*, natsStatus status, void* closure) {
  if (status != NATS_NOT_PERMITTED) return;
  natsStatus ignored = NATS_OK;
  const char* text = nats_GetLastError(&ignored);  // the error of this thread, which the library has set for this call
  const std::string subject = text == nullptr ? "" : denied_subject(text);
  if (subject.empty()) return;
  auto* inbox = static_cast<Inbox*>(closure);
  const std::lock_guard lock(inbox->mutex_);
  if (inbox->denied_.size() < kMaxDenied) inbox->denied_.insert(subject);
  if (!inbox->open_) return;
  asio::post(inbox->core_, [self = inbox->shared_from_this(), subject] { self->answer_denied(subject); });
}

void Inbox::answer_denied(const std::string& subject) {
  Ack refusal;
  refusal.status = NATS_NOT_PERMITTED;
  std::vector<natsMsg*> messages;  // nats.c keeps them until their time-out
  for (const auto& [message, expected] : expected_) {
    if (expected.subject == subject) messages.push_back(message);
  }
  for (natsMsg* message : messages) {
    const auto found = expected_.extract(message);
    if (reader_ != nullptr) reader_->on_ack(found.mapped(), refusal);
    Flight& flight = *found.mapped().flight;
    if (--flight.left == 0) flight.done.cancel();
  }
}

void Inbox::deliver_arrived() {
  std::vector<std::pair<Message, Ack>> arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(arrived_);
  }
  for (const auto& [message, ack] : arrived) deliver(message.get(), ack);
}

void Inbox::answer_unpublished(natsMsg* message, const Ack& refusal) {
  if (refusal.status != NATS_OK) return deliver(message, refusal);
  const auto found = expected_.extract(message);
  if (!found.empty() && --found.mapped().flight->left == 0) found.mapped().flight->done.cancel();
}

void Inbox::deliver(natsMsg* message, const Ack& ack) {
  const auto found = expected_.extract(message);
  if (found.empty() || reader_ == nullptr) return;  // the message was given up meanwhile
  Flight& flight = *found.mapped().flight;
  reader_->on_ack(found.mapped(), ack);
  if (--flight.left == 0) flight.done.cancel();
}

}  // namespace driftd::sinks
