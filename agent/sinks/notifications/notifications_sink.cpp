// SPDX-License-Identifier: Apache-2.0
#include "sinks/notifications/notifications_sink.hpp"

namespace driftd::sinks {
namespace {

class NotificationsSink final : public core::Sink {
 public:
  explicit NotificationsSink(QueueChanged changed) : changed_(std::move(changed)) {}

  core::RetryPolicy policy() const override { return {}; }
  Task<Status> start() override { co_return Status{}; }
  Task<core::Attempt> send(core::StoredEvent event) override {
    if (!event.replay && changed_) changed_(event);
    if (!event.agent_event) ++seen_;
    co_return core::Attempt{};
  }
  Task<void> stop() override { co_return; }
  std::string describe() const override { return "queue open, " + std::to_string(seen_) + " events seen"; }

 private:
  QueueChanged changed_;
  std::uint64_t seen_ = 0;
};

}  // namespace

std::unique_ptr<core::Sink> open_notifications(NotificationsSettings, QueueChanged changed) {
  return std::make_unique<NotificationsSink>(std::move(changed));
}

}  // namespace driftd::sinks
