// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace driftd::host {

namespace asio = boost::asio;

/// Calls `changed` when something in the folders changed and nothing has changed since for a moment. If a folder does
/// not exist yet, its nearest existing parent is watched. Without inotify `changed` is called every few seconds. Core
/// thread.
class FolderWatch : public std::enable_shared_from_this<FolderWatch> {
 public:
  FolderWatch(asio::any_io_executor core, std::vector<std::filesystem::path> folders, std::function<void()> changed);
  void start();
  void stop();

 private:
  void arm_all();
  void add(const std::filesystem::path& folder, bool wanted);
  void read();
  void restart_quiet_timer();
  void poll();

  const std::vector<std::filesystem::path> folders_;
  std::function<void()> changed_;
  asio::posix::stream_descriptor inotify_;
  asio::steady_timer quiet_, again_;
  std::map<std::filesystem::path, int> watched_;
  std::vector<char> buffer_;
  std::chrono::steady_clock::time_point first_{};  ///< first change since the last call of changed_; epoch: none
  bool stopped_ = false;
};

}  // namespace driftd::host
