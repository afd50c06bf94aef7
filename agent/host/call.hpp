// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ipc/messages.hpp"
#include "ipc/wire.hpp"

namespace driftd::host {

namespace asio = boost::asio;

using Steady = std::chrono::steady_clock;

/// One call to a worker, from its request to its result. Made and kept by a CallRouter while it runs; shared with the
/// coroutine that waits for it (run_call). Core thread.
struct Call {
  Call(asio::any_io_executor core, std::uint64_t id, ipc::FrameType type, Steady::time_point deadline)
      : id(id),
        type(type),
        deadline(deadline),
        wake(core),
        limit(core) {}
  const std::uint64_t id;
  const ipc::FrameType type;
  Steady::time_point deadline;                  ///< after a cancel: the end of the grace time
  std::deque<ipc::Frame> queue;                 ///< records, marks and diagnostics that are not yet in a page
  std::deque<std::string> settled;              ///< payloads of `settled` frames that nobody has looked at yet
  std::optional<Result<ipc::CallResult>> done;  ///< the answer, or why there will be none; set once
  std::uint64_t credit_to_return = 0;           ///< credit of frames that left the queue, not yet returned; bytes
  std::uint64_t credit_used = 0;                ///< credit that the worker used and did not get back; bytes
  std::size_t asked = 0;                        ///< number of identities in a read, or of events in a deliver
  std::size_t settled_frames = 0;               ///< number of `settled` frames so far, and their bytes
  std::size_t settled_bytes = 0;
  bool asks_permit = false;                   ///< a permit was requested and not yet granted
  bool cancelled = false, abandoned = false;  ///< the worker was asked to end it; nobody waits for it
  bool stopped_early = false;                 ///< it was cancelled before its deadline
  Steady::duration waited{};                  ///< from its begin to the deadline that it missed
  const Steady::time_point begun = Steady::now();
  std::chrono::milliseconds cpu_at_begin{0};  ///< CPU time of the worker when the call began
  asio::steady_timer wake, limit;             ///< cancelled by each frame and by the result; expires at the deadline
};

using Calls = std::map<std::uint64_t, std::shared_ptr<Call>>;  ///< by id

}  // namespace driftd::host
