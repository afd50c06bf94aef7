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

/// Calls `changed` when something in the folders changed and nothing has changed since for 300 ms, or after 3 s of
/// changes that do not stop. It does not say what changed. If a folder does not exist yet, its nearest existing parent
/// is watched. Without inotify `changed` is called every 5 s. A folder that cannot be watched is logged once. Owned by
/// a Factory. Core thread.
class FolderWatch : public std::enable_shared_from_this<FolderWatch> {
 public:
  FolderWatch(asio::any_io_executor core, std::vector<std::filesystem::path> folders, std::function<void()> changed);
  void start();  ///< once
  void stop();   ///< `changed` is not called again; final and idempotent

 private:
  void arm_all();  ///< again after each change, because a folder may have been created or replaced
  void add(const std::filesystem::path& folder, bool wanted);  ///< not wanted: a parent, watched for arrivals only
  void read();
  void restart_quiet_timer();
  void poll();  ///< without inotify

  const std::vector<std::filesystem::path> folders_;
  std::function<void()> changed_;
  asio::posix::stream_descriptor inotify_;
  asio::steady_timer quiet_, again_;
  std::map<std::filesystem::path, int> watched_;   ///< inotify's number; -1: it cannot be watched
  std::vector<char> buffer_;                       ///< the events are read and not looked at
  std::chrono::steady_clock::time_point first_{};  ///< first change since the last call of changed_; epoch: none
  bool stopped_ = false;
};

}  // namespace driftd::host
