// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace driftd {

/// How a coroutine that nobody waits for ends: what it throws leaves the executor's run() and ends the process, which
/// is restarted. With asio::detached it would vanish, and the agent would go on without one of its loops.
struct Fatal {
  void operator()(std::exception_ptr thrown) const {
    if (thrown) std::rethrow_exception(thrown);
  }
};
inline constexpr Fatal fatal;

}  // namespace driftd
