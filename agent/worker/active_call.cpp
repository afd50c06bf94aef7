// SPDX-License-Identifier: Apache-2.0
#include "worker/active_call.hpp"

#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>

namespace driftd::worker {
namespace {

constexpr std::size_t kBatchBytes = 64u << 10;
constexpr std::uint64_t kMaxReported = 20;  // records of one call that are named in a diagnostic; all are counted

thread_local ActiveCall* running = nullptr;

std::chrono::steady_clock::time_point at(std::int64_t ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
}

}  // namespace

std::size_t approximate_size(const core::Observation& o) {
  std::size_t n = 256 + o.id.kind.size() + o.id.id.size() + o.backend.size() + o.body.size() + o.status.size() +
                  o.version.size() + o.external_name.size() + o.origin.size();
  for (const auto& u : o.unread) n += u.path.size() + u.reason.size() + 16;
  for (const auto& [key, value] : o.metadata) n += key.size() + value.size() + 8;
  return n;
}

std::int64_t mono_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

ActiveCall::~ActiveCall() {
  if (cancel_fd_ >= 0) ::close(cancel_fd_);
}

int ActiveCall::cancel_fd() {
  const std::lock_guard lock(mutex_);
  if (cancel_fd_ < 0) cancel_fd_ = ::eventfd(cancelled_ ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
  return cancel_fd_;
}

void ActiveCall::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (cancel_fd_ >= 0) (void)::eventfd_write(cancel_fd_, 1);
  changed_.notify_all();
}

void ActiveCall::add_credit(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  in_flight_ -= std::min(bytes, in_flight_);
  changed_.notify_all();
}

void ActiveCall::permitted(const ipc::PermitAnswer& answer) {
  const std::lock_guard lock(mutex_);
  if (answer.ticket == ticket_) permitted_ = answer;
  changed_.notify_all();
}

bool ActiveCall::accepts_records() const {
  return type == ipc::FrameType::refresh || type == ipc::FrameType::read || type == ipc::FrameType::watch;
}

driftd_status ActiveCall::send(ipc::FrameType frame, std::string payload) {
  {
    std::unique_lock lock(mutex_);
    const bool room =
        changed_.wait_until(lock, at(deadline_ns), [this] { return cancelled_ || in_flight_ < ipc::kCallCredit; });
    // A cancelled call may still send while there is credit: its diagnostics.
    if (in_flight_ >= ipc::kCallCredit) return room ? DRIFTD_CANCELLED : DRIFTD_DEADLINE;
    in_flight_ += payload.size() + ipc::kHeaderSize;
  }
  return channel_.send(frame, id, std::move(payload)) ? DRIFTD_OK : DRIFTD_CANCELLED;
}

driftd_status ActiveCall::send_uncredited(ipc::FrameType frame, std::string payload) {
  return channel_.send(frame, id, std::move(payload)) ? DRIFTD_OK : DRIFTD_CANCELLED;
}

driftd_status ActiveCall::flush() {
  if (batch_.empty()) return DRIFTD_OK;
  std::string payload = ipc::encode(batch_);
  batch_.clear();
  batch_bytes_ = 0;
  return send(ipc::FrameType::records, std::move(payload));
}

driftd_status ActiveCall::emit(std::vector<core::Observation> incoming) {
  const bool bounded = type == ipc::FrameType::refresh;
  for (auto& o : incoming) {
    const std::size_t bytes = approximate_size(o);
    const bool too_much = bytes_ + bytes > instance.open.max_bytes;
    if (!budget_hit_ && bounded && (too_much || records_ + 1 > instance.open.max_records)) {
      budget_hit_ = true;
      by_bytes_ = too_much;
    }
    if (budget_hit_) return DRIFTD_BUDGET;
    ++records_;
    bytes_ += bytes;
    if (batch_bytes_ + bytes > kBatchBytes || batch_.size() >= ipc::kMaxBatch) {
      if (const auto status = flush(); status != DRIFTD_OK) return status;
    }
    batch_bytes_ += bytes;
    batch_.push_back(std::move(o));
  }
  const bool much = bytes_ / 9 > instance.open.max_bytes / 10;
  if (!budget_neared_ && bounded && (much || records_ * 10 > instance.open.max_records * 9)) {
    budget_neared_ = true;
    by_bytes_ = much;
  }
  return ending() || budget_neared_ ? DRIFTD_FINISH_SOON : DRIFTD_OK;
}

driftd_status ActiveCall::mark(core::Mark mark) {
  const bool complete = mark.type == core::Mark::Type::complete;
  if (complete && budget_hit_) return DRIFTD_BUDGET;
  if (complete && (complete_forbidden_ || type != ipc::FrameType::refresh)) return DRIFTD_INVALID;
  if (const auto status = flush(); status != DRIFTD_OK) return status;
  completed_ = completed_ || complete;
  return send(ipc::FrameType::mark, ipc::encode(mark));
}

driftd_status ActiveCall::diagnose(core::Diagnostic diagnostic) {
  if (const auto status = flush(); status != DRIFTD_OK) return status;
  last_ = diagnostic;
  return send(ipc::FrameType::diagnostic, ipc::encode(diagnostic));
}

void ActiveCall::report_bad_record(core::Diagnostic diagnostic) {
  if (bad_records_ >= kMaxReported || flush() != DRIFTD_OK) return;
  if (++bad_records_ == kMaxReported)
    diagnostic.text += "; further records of this call that cannot be taken are not named";
  (void)send(ipc::FrameType::diagnostic, ipc::encode(diagnostic));
}

driftd_status ActiveCall::permit(const std::string& bucket, std::uint32_t tokens) {
  if (ending()) return cancelled_ ? DRIFTD_CANCELLED : DRIFTD_DEADLINE;  // a second one while the first is pending
  ipc::PermitRequest request{0, bucket, tokens};
  {
    const std::lock_guard lock(mutex_);
    request.ticket = ++ticket_;
    permitted_.reset();
  }
  if (!channel_.send(ipc::FrameType::permit, id, ipc::encode(request))) return DRIFTD_CANCELLED;
  std::unique_lock lock(mutex_);
  const bool answered = changed_.wait_until(lock, at(deadline_ns), [this] { return cancelled_ || permitted_; });
  if (!answered) return DRIFTD_DEADLINE;
  return permitted_ ? static_cast<driftd_status>(permitted_->code) : DRIFTD_CANCELLED;
}

ActiveCall* running_call() { return running; }
void set_running_call(ActiveCall* call) { running = call; }

CallTable& CallTable::instance() {
  static auto* table = new CallTable;  // never freed: plugins may still call while the process ends
  return *table;
}

driftd_call CallTable::add(std::shared_ptr<ActiveCall> call) {
  const std::lock_guard lock(mutex_);
  auto free = std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.call == nullptr; });
  if (free == slots_.end()) free = slots_.insert(slots_.end(), Slot{});
  free->call = std::move(call);
  return (std::uint64_t(free->generation) << 32) | std::uint64_t(free - slots_.begin() + 1);
}

void CallTable::remove(driftd_call handle) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[(handle & 0xffffffff) - 1];
  slot.call.reset();
  ++slot.generation;
}

std::shared_ptr<ActiveCall> CallTable::find(driftd_call handle) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t index = handle & 0xffffffff;
  if (index == 0 || index > slots_.size()) return nullptr;
  const Slot& slot = slots_[index - 1];
  return slot.generation == handle >> 32 ? slot.call : nullptr;
}

}  // namespace driftd::worker
