// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>

#include "driftd/sdk/call.hpp"

namespace driftd::op {

struct HostCallState;

/// What `kube` and `http` ask of their host, in a program that is not a plugin: when to stop. One for each piece of
/// work, on its thread.
class HostCall {
 public:
  /// Ends at `deadline`, and when `stop` is requested.
  explicit HostCall(std::stop_token stop,
                    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max());
  ~HostCall();
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

  sdk::Call& call() { return *call_; }

 private:
  std::unique_ptr<HostCallState> state_;
  std::unique_ptr<sdk::Call> call_;
};

}  // namespace driftd::op
