// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd::sinks {

/// `type: notifications`. There is nothing to set yet.
struct NotificationsSettings {};

}  // namespace driftd::sinks
