// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <algorithm>
#include <chrono>

#include "driftd/sdk/call.hpp"

namespace driftd::common {

/// Blocks until `until` (returns false) or until the call is cancelled (returns true). Throws DEADLINE if the deadline
/// of the call passes first.
/// A call whose host gives no descriptor for cancellation is checked every 100 ms.
inline bool wait_until(sdk::Call& call, std::chrono::steady_clock::time_point until) {
  using std::chrono::milliseconds;
  while (!call.cancelled()) {
    const auto now = std::chrono::steady_clock::now();
    if (call.deadline_ns() <= now.time_since_epoch().count())
      throw sdk::Failure(DRIFTD_DEADLINE, "the call's deadline passed");
    const auto left = std::chrono::ceil<milliseconds>(until - now).count();
    if (left <= 0) return false;
    pollfd cancel{call.cancel_fd(), POLLIN, 0};
    ::poll(&cancel, 1, static_cast<int>(std::min<long long>(left, cancel.fd < 0 ? 100 : 1000)));
  }
  return true;
}

}  // namespace driftd::common
