// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/command.hpp"
#include "core/event/event.hpp"

namespace driftd::cli {

/// Returns a notification of a kind (opened, changed, reminder, escalation, ended, summary) that says that it is a
/// test.
core::StoredEvent sample_notification(const std::string& kind, Nanos now);

/// Returns the notification with this number of the agent's log. Fails with what else has this number.
Outcome<core::StoredEvent> stored_notification(const Context& context, std::int64_t seq);

}  // namespace driftd::cli
