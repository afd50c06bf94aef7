// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <stdexcept>

#include "driftd/sdk/call.hpp"

namespace driftd::test {

/// A call of the plugin SDK without a plugin host, as a program needs it that links the libraries of plugins/: it has
/// the wall clock and can be cancelled from another thread. Installs its host table, which serves every such call.
class HostedCall {
 public:
  explicit HostedCall(std::chrono::milliseconds max = std::chrono::minutes(5))
      : deadline_(std::chrono::steady_clock::now() + max) {
    if (::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("pipe2");
    sdk::host = &table();
  }
  ~HostedCall() {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  HostedCall(const HostedCall&) = delete;
  HostedCall& operator=(const HostedCall&) = delete;

  driftd_call handle() { return reinterpret_cast<driftd_call>(this); }
  /// Any thread.
  void cancel() {
    cancelled_ = true;
    (void)!::write(pipe_[1], "x", 1);
  }

 private:
  static HostedCall& of(driftd_call call) { return *reinterpret_cast<HostedCall*>(call); }
  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  static const driftd_host_table& table() {
    static const driftd_host_table kTable = [] {
      driftd_host_table out{};
      out.size = sizeof out;
      out.now = [] { return now(); };
      out.cancelled = [](driftd_call call) { return of(call).cancelled_ ? 1 : 0; };
      out.deadline = [](driftd_call call) { return std::int64_t{of(call).deadline_.time_since_epoch().count()}; };
      out.cancel_fd = [](driftd_call call) { return of(call).pipe_[0]; };
      return out;
    }();
    return kTable;
  }

  const std::chrono::steady_clock::time_point deadline_;
  std::atomic<bool> cancelled_{false};
  int pipe_[2] = {-1, -1};
};

}  // namespace driftd::test
