// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "core/ports/sink.hpp"
#include "sinks/notifications/settings.hpp"

namespace driftd::sinks {

/// Called when the queue may have changed: a drift that needs a decision was opened, changed or closed. The queue
/// itself is read from the drifts (delivery/approval_queue.hpp), so nothing is lost if nobody listens.
using QueueChanged = std::function<void(const core::StoredEvent&)>;

/// Opens the notification queue as a sink. An event that reaches it counts as delivered, because its drift was
/// committed with it. Core thread. `changed` may be empty.
std::unique_ptr<core::Sink> open_notifications(NotificationsSettings settings, QueueChanged changed);

}  // namespace driftd::sinks
