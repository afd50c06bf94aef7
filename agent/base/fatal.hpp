// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace driftd {

/// Completion handler for a coroutine that nobody waits for: its exception leaves the executor's run() and ends the
/// process, which is then restarted. With asio::detached the exception would be lost, and the agent would go on without
/// one of its loops.
struct Fatal {
  void operator()(std::exception_ptr thrown) const {
    if (thrown) std::rethrow_exception(thrown);
  }
};
inline constexpr Fatal fatal;  ///< the argument of asio::co_spawn

}  // namespace driftd
