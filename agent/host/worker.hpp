// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/task.hpp"

namespace driftd::host {

/// What a worker uses of the machine. All zero if unknown.
struct Usage {
  std::int64_t rss_bytes = 0;
  std::chrono::milliseconds cpu{0};  ///< processor time so far
  int threads = 0;                   ///< including the host's own few
};

/// What runs the plugin of one session: a process, or threads of this process. Core thread.
class Worker {
 public:
  virtual ~Worker() = default;
  virtual int pid() const { return 0; }  ///< 0 if in-process
  virtual Usage usage() const { return {}; }
  virtual void limit_files(int) {}  ///< maximum number of open descriptors
  virtual void kill() = 0;          ///< immediately; reap() returns soon after
  /// Ends the worker if it is still alive. Returns how it ended: `killed by signal 11 (Segmentation fault)`, `exited
  /// with 0`.
  virtual Task<std::string> reap() = 0;
  /// Returns the read end of its stderr, or nullptr.
  virtual asio::posix::stream_descriptor* errors() { return nullptr; }
};

/// Waits for the end of a worker and returns how it ended. Returns nullopt if that takes longer than `timeout`: SIGKILL
/// does not end a thread that waits in the kernel for a file system. The worker is then kept until it has ended.
Task<std::optional<std::string>> wait_for_end(std::shared_ptr<Worker> worker, asio::any_io_executor core,
                                              std::chrono::milliseconds timeout);

/// A worker that runs and waits for its first frame.
struct StartedWorker {
  std::unique_ptr<Worker> worker;
  int fd = -1;  ///< the agent's end of the protocol socket; owned by the caller
};

/// Starts a worker process in its own process group. It has /dev/null as stdin and stdout, the protocol at descriptor 3
/// and a copy of `library`, the plugin's sealed bytes, at 4. Returns `unavailable` if it cannot start.
Result<StartedWorker> start_process(asio::any_io_executor core, const std::string& program, int library);
/// Starts threads of this process. If a plugin never returns, its threads are left behind.
Result<StartedWorker> start_threads(asio::any_io_executor core, int library);

}  // namespace driftd::host
