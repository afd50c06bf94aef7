// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "ipc/wire.hpp"

namespace driftd::worker {

/// The worker's end of the socket to the agent: blocking, because the worker has threads and no event loop. Owns the
/// descriptor. Member of a ProviderHost.
class AgentChannel {
 public:
  explicit AgentChannel(int fd) : fd_(fd) {}
  ~AgentChannel();
  AgentChannel(const AgentChannel&) = delete;
  AgentChannel& operator=(const AgentChannel&) = delete;

  /// Sends a whole frame, and blocks until the kernel has taken all of it; frames of several threads do not mix.
  /// Returns false if the agent is gone. [any thread]
  bool send(ipc::FrameType type, std::uint64_t call, std::string payload);
  /// Blocks until the next frame. Returns nullopt if the agent closed the socket, `corrupt` if a frame is invalid.
  /// [reader thread]
  Result<std::optional<ipc::Frame>> receive();
  /// Ends both directions; receive() then returns nullopt. [any thread]
  void shut();

 private:
  const int fd_;
  std::mutex sending_;  // one frame at a time
  ipc::FrameReader reader_;
};

}  // namespace driftd::worker
