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

/// Says when something in one of some folders changed, once things have been quiet for a moment. A folder that is not
/// there yet is waited for through the nearest one above it. Without inotify it says so every few seconds. Core thread.
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
  std::chrono::steady_clock::time_point first_{};  ///< of the changes not yet told; none: the epoch
  bool stopped_ = false;
};

}  // namespace driftd::host
