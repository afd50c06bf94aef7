// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

namespace driftd::test {

/// A TCP relay on loopback between a client and a server, that cuts both connections after a given number of bytes from
/// the server. One thread for all connections.
class CuttingRelay {
 public:
  explicit CuttingRelay(int server_port);
  ~CuttingRelay();
  CuttingRelay(const CuttingRelay&) = delete;
  CuttingRelay& operator=(const CuttingRelay&) = delete;

  int port() const { return port_; }
  /// Cuts each connection after so many bytes from the server, counted from now over all of them; -1: never.
  void cut_after(long long bytes);
  /// Cuts what is open; later connections go to another server.
  void point_to(int server_port);
  /// Bytes of the server since the last cut_after().
  long long passed() const { return passed_; }

 private:
  void serve();

  std::atomic<int> server_port_;
  int port_ = 0, listener_ = -1;
  std::atomic<bool> done_{false}, cut_all_{false};
  std::atomic<long long> limit_{-1}, passed_{0};
  std::thread thread_;
};

}  // namespace driftd::test
