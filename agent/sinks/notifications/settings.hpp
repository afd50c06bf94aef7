// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd::sinks {

/// `type: notifications`. Nothing to set yet: grouping, rate and forwarding come with the delivery issue.
struct NotificationsSettings {};

}  // namespace driftd::sinks
