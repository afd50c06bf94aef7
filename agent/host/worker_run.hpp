// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "host/line_log.hpp"
#include "host/supervisor_spec.hpp"
#include "host/worker.hpp"
#include "host/worker_channel.hpp"

namespace driftd::host {

/// One worker from its start to its end: the process, its socket, its stderr, and why it was killed. Its supervisor
/// makes another one for the next worker. The coroutine that reads stderr keeps it alive until end(). Core thread.
class WorkerRun : public std::enable_shared_from_this<WorkerRun> {
 public:
  /// Makes a run without a worker. The scrubber must outlive the worker.
  WorkerRun(asio::any_io_executor core, const ipc::Scrubber& scrubber);

  /// Starts the worker: a process of `program`, or threads of this process, as the session says. Returns `unavailable`
  /// if it cannot start.
  Status start(const SupervisorSpec& spec, const std::string& program);
  /// Prints what stderr still holds, closes the socket, and forgets the worker. Call this when the worker has ended, or
  /// does not end.
  void end();

  bool alive() const { return worker_ != nullptr; }                           ///< between start() and end()
  const std::shared_ptr<Worker>& worker() const { return worker_; }           ///< null if not alive
  const std::shared_ptr<WorkerChannel>& channel() const { return channel_; }  ///< null if not alive
  bool is_process() const { return worker_ && worker_->pid() != 0; }
  std::uint64_t number() const { return number_; }  ///< unique in this process, unlike a pid
  int pid() const { return worker_ ? worker_->pid() : 0; }
  Usage usage() const { return worker_ ? worker_->usage() : Usage{}; }
  void limit_files(int max);  ///< maximum number of open descriptors
  void ask_to_stop();         ///< asks the worker to close its instance and end

  /// Kills the worker and closes its socket, so that nothing it still sent is handled and no child of it keeps the
  /// socket open.
  void kill(std::string reason);
  bool killed() const { return killed_; }  ///< kill() was called
  /// Sets why the worker ends, if nothing else was the reason before.
  void explain_end(std::string reason);
  void explain_hang();                                           ///< adds that the killed process does not end
  const std::string& end_reason() const { return end_reason_; }  ///< empty: it ends by itself

 private:
  static Task<void> read_errors(std::shared_ptr<WorkerRun> self);

  const asio::any_io_executor core_;
  const ipc::Scrubber& scrubber_;
  const std::uint64_t number_;
  std::shared_ptr<Worker> worker_;
  std::shared_ptr<WorkerChannel> channel_;
  std::unique_ptr<LineLog> errors_;  ///< null if its stderr is not read
  std::string end_reason_;
  bool killed_ = false;
};

}  // namespace driftd::host
