// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace driftd::test {

/// The minimum that at-least-once delivery costs, for benchmarks: appends the bytes to a file, calls fdatasync,
/// publishes them to a JetStream stream of its own in `messages` messages, one after the other, and waits for all acks.
/// One thread. Throws std::runtime_error if a step fails.
class Floor {
 public:
  Floor(const std::string& folder, const std::string& nats_url, int messages = 1);
  ~Floor();
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;
  /// Does all steps once. Returns when the last ack is there.
  void deliver(const std::string& bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace driftd::test
