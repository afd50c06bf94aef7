// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/task.hpp"

namespace driftd::host {

/// What a worker takes of the machine. All zero: not known.
struct Usage {
  std::int64_t rss_bytes = 0;
  std::chrono::milliseconds cpu{0};  ///< processor time so far
  int threads = 0;
};

/// What serves one session: a process, or threads of this one. Core thread.
class Worker {
 public:
  virtual ~Worker() = default;
  virtual int pid() const { return 0; }  ///< 0: in-process
  virtual Usage usage() const { return {}; }
  virtual void limit_files(int) {}  ///< descriptors that it may hold
  virtual void kill() = 0;          ///< at once; reap() then returns soon
  /// Ends it if it still lives, and says how it ended: `killed by signal 11 (Segmentation fault)`, `exited with 0`.
  virtual Task<std::string> reap() = 0;
  /// The read end of its stderr, or nullptr.
  virtual asio::posix::stream_descriptor* errors() { return nullptr; }
};

/// How it ended. Nothing: it has not within `timeout`, for SIGKILL ends no thread that waits in the kernel for a file
/// system; it is kept, and waited for, until it has.
Task<std::optional<std::string>> wait_for_end(std::shared_ptr<Worker> worker, asio::any_io_executor core,
                                              std::chrono::milliseconds timeout);

struct StartedWorker {
  std::unique_ptr<Worker> worker;
  int fd = -1;  ///< the agent's end of the protocol socket; owned by the caller
};

/// A worker process in its own process group, with /dev/null as stdin and stdout, the protocol at descriptor 3 and a
/// copy of `library`, the plugin's sealed bytes, at 4. `unavailable` when it cannot start.
Result<StartedWorker> start_process(asio::any_io_executor core, const std::string& program, int library);
/// Own threads of this process. A plugin that never returns costs its threads: they are left behind.
Result<StartedWorker> start_threads(asio::any_io_executor core, int library);

}  // namespace driftd::host
