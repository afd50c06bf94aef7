// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "ipc/wire.hpp"

namespace driftd::worker {

/// The worker's end of the socket to the agent. Owns the descriptor.
class AgentChannel {
 public:
  explicit AgentChannel(int fd) : fd_(fd) {}
  ~AgentChannel();
  AgentChannel(const AgentChannel&) = delete;
  AgentChannel& operator=(const AgentChannel&) = delete;

  /// Sends a whole frame. Returns false if the agent is gone. [any thread]
  bool send(ipc::FrameType type, std::uint64_t call, std::string payload);
  /// Blocks until the next frame. Returns nullopt if the agent closed the socket, `corrupt` if a frame is invalid.
  /// [reader thread]
  Result<std::optional<ipc::Frame>> receive();
  /// Ends both directions; receive() then returns nullopt. [any thread]
  void shut();

 private:
  const int fd_;
  std::mutex sending_;
  ipc::FrameReader reader_;
};

}  // namespace driftd::worker
