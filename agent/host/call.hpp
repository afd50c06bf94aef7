// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <optional>
#include <string>

#include "ipc/messages.hpp"

namespace driftd::host {

namespace asio = boost::asio;

using Steady = std::chrono::steady_clock;

inline constexpr auto kCrashWindow = std::chrono::minutes(10);
std::string render_seconds(std::chrono::milliseconds t);  ///< `1.5 s`, `250 ms`: for people

/// A call on its way to a worker and back.
struct Call {
  Call(asio::any_io_executor core, std::uint64_t id, ipc::FrameType type, Steady::time_point deadline)
      : id(id),
        type(type),
        deadline(deadline),
        wake(core),
        limit(core) {}
  const std::uint64_t id;
  const ipc::FrameType type;
  Steady::time_point deadline;   ///< once it is cancelled: of the grace
  std::deque<ipc::Frame> queue;  ///< records, marks, diagnostics not yet in a page
  std::optional<Result<ipc::CallResult>> done;
  std::uint64_t credit_to_return = 0;  ///< credit credit_used out of the queue and not yet given back, bytes
  std::uint64_t credit_used = 0;       ///< credit that the worker used and did not get back, bytes
  std::size_t asked = 0;               ///< identities of a read
  bool asks_permit = false;            ///< and has no answer yet
  bool cancelled = false, abandoned = false;
  bool stopped_early = false;  ///< cancelled before its deadline
  Steady::duration waited{};   ///< from its begin to the deadline that it missed
  const Steady::time_point begun = Steady::now();
  std::chrono::milliseconds cpu_at_begin{0};  ///< of the worker
  asio::steady_timer wake, limit;
};

}  // namespace driftd::host
