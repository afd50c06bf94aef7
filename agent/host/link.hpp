// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "host/wire.hpp"

namespace driftd::host {

/// The worker's end of the socket to the agent. Owns the descriptor.
class Link {
 public:
  explicit Link(int fd) : fd_(fd) {}
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Sends a frame whole. False: the agent is gone. [any thread]
  bool send(FrameType type, std::uint64_t call, std::string payload);
  /// Blocks for the next frame; nullopt: the agent closed the socket; `corrupt`: it makes no sense. [reader thread]
  Result<std::optional<Frame>> receive();
  /// Ends both directions; receive() then answers nullopt. [any thread]
  void shut();

 private:
  const int fd_;
  std::mutex sending_;
  FrameReader reader_;
};

}  // namespace driftd::host
