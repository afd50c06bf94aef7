// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "core/ports/sink.hpp"
#include "sinks/notifications/settings.hpp"

namespace driftd::sinks {

/// Someone should look at the queue: a drift that asks came, moved, or left. What there is to decide is read from the
/// drifts (delivery/notify.hpp), so nothing is lost when nobody listens.
using QueueChanged = std::function<void(const core::StoredEvent&)>;

/// The notification queue as a sink: an event that reaches it is delivered, because its drift was committed with it.
/// Core thread; `changed` may be empty.
std::unique_ptr<core::Sink> open_notifications(NotificationsSettings settings, QueueChanged changed);

}  // namespace driftd::sinks
