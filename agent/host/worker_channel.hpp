// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <deque>
#include <functional>
#include <memory>

#include "base/task.hpp"
#include "ipc/wire.hpp"

namespace driftd::host {

/// The agent's end of the socket to a worker. Owns the descriptor. Made by a WorkerRun and shared with the CallRouter;
/// a write in progress and receive() keep it alive. Core thread.
class WorkerChannel : public std::enable_shared_from_this<WorkerChannel> {
 public:
  WorkerChannel(asio::any_io_executor core, int fd);
  /// Queues a frame. The queue has no limit, because what the agent sends is small: requests, credit, cancels.
  /// Does nothing once the socket is closed; a write that fails is noticed by receive().
  void send(ipc::FrameType type, std::uint64_t call, std::string payload);
  /// Passes each frame to `on_frame` until the socket is closed by either side (ok) or carries an invalid frame
  /// (`corrupt`). Never waits for a handler: the credit limits what can arrive.
  static Task<Status> receive(std::shared_ptr<WorkerChannel> self, std::function<void(ipc::Frame)> on_frame);
  void close();  ///< drops what is queued and ends receive(); idempotent

 private:
  void write_next();  ///< one write at a time

  asio::local::stream_protocol::socket socket_;
  std::deque<std::string> outgoing_;  ///< rendered frames; the first is being written
  bool writing_ = false;
};

}  // namespace driftd::host
