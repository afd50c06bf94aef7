// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace driftd::test {

/// The least that at-least-once delivery costs: append the bytes to a file, fdatasync, publish them to a JetStream
/// stream of its own in a given number of messages, one after the other, wait for all acks. One thread; throws
/// std::runtime_error with what failed.
class Floor {
 public:
  Floor(const std::string& folder, const std::string& nats_url, int messages = 1);
  ~Floor();
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;
  void deliver(const std::string& bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace driftd::test
