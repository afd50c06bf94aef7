// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace driftd::test {

/// A TCP relay on loopback between clients and a server. It closes both sides of a connection when the server has sent
/// a given number of bytes. A client's end is passed on, and the server may still answer. One thread serves all
/// connections.
class CuttingRelay {
 public:
  explicit CuttingRelay(int server_port);
  ~CuttingRelay();
  CuttingRelay(const CuttingRelay&) = delete;
  CuttingRelay& operator=(const CuttingRelay&) = delete;

  int port() const { return port_; }
  /// Cuts every connection on which the server sends anything beyond this number of bytes. They are counted from now
  /// on, over all connections. -1: never.
  void cut_after(long long bytes);
  /// Runs `action` once, before the first bytes of a client that contain `text` are passed on.
  void before(const std::string& text, std::function<void()> action);
  /// Cuts the open connections. Later ones go to another server.
  void point_to(int server_port);
  /// Returns the number of bytes from the server since the last cut_after().
  long long passed() const { return passed_; }
  /// Returns how many connections were cut because of cut_after().
  int cuts() const { return cuts_; }

 private:
  void serve();
  void act_before(std::string_view bytes);

  std::atomic<int> server_port_;
  int port_ = 0, listener_ = -1;
  std::atomic<bool> done_{false}, cut_all_{false};
  std::atomic<long long> limit_{-1}, passed_{0};
  std::atomic<int> cuts_{0};
  std::mutex mutex_;
  std::string awaited_;           ///< under mutex_
  std::function<void()> action_;  ///< under mutex_; empty if none is awaited
  std::thread thread_;
};

}  // namespace driftd::test
