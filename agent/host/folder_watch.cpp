// SPDX-License-Identifier: Apache-2.0
#include "host/folder_watch.hpp"

#include <sys/inotify.h>
#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"

namespace driftd::host {
namespace {

namespace fs = std::filesystem;

constexpr auto kQuiet = std::chrono::milliseconds(300);  // a file that is being copied changes many times
constexpr auto kMaxDelay = std::chrono::seconds(3);      // maximum delay if the changes never stop
constexpr auto kPoll = std::chrono::seconds(5);
constexpr std::uint32_t kFiles =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t kArrival = IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;  // of a folder

/// Returns the folder itself, or its nearest existing parent.
fs::path nearest(fs::path folder) {
  std::error_code missing;  // what cannot be examined counts as missing
  while (!fs::is_directory(folder, missing) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

}  // namespace

FolderWatch::FolderWatch(asio::any_io_executor core, std::vector<fs::path> folders, std::function<void()> changed)
    : folders_(std::move(folders)),
      changed_(std::move(changed)),
      inotify_(core),
      quiet_(core),
      again_(core),
      buffer_(16384) {}

void FolderWatch::start() {
  const int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) {
    log::room("host").warn("plugin folders are looked at every {} s: inotify: {}", kPoll.count(), std::strerror(errno));
    return poll();
  }
  inotify_.assign(fd);
  arm_all();
  read();
}

void FolderWatch::stop() {
  stopped_ = true;
  boost::system::error_code ignored;  // closing twice is not a failure
  inotify_.close(ignored);
  quiet_.cancel();
  again_.cancel();
  changed_ = nullptr;
}

void FolderWatch::arm_all() {
  for (const auto& folder : folders_) {
    fs::path at = nearest(folder);
    add(at, at == folder);
    for (fs::path now = nearest(folder); now != at; now = nearest(folder)) {  // it was just created
      at = now;
      add(at, at == folder);
    }
  }
}

/// If a folder is watched already, inotify returns the same number; a folder that was replaced gets a new one.
void FolderWatch::add(const fs::path& folder, bool wanted) {
  const std::uint32_t mask = (wanted ? kFiles : kArrival) | IN_ONLYDIR | IN_MASK_ADD;
  const int number = ::inotify_add_watch(inotify_.native_handle(), folder.c_str(), mask);
  if (number >= 0) {
    watched_[folder] = number;
  } else if (watched_.emplace(folder, -1).second) {
    log::room("host").warn("{} is not watched for plugins: {}; a change there is seen at the next `driftd plugin ls`",
                           folder.string(), std::strerror(errno));
  }
}

void FolderWatch::read() {
  inotify_.async_read_some(asio::buffer(buffer_),
                           [weak = weak_from_this()](const boost::system::error_code& failed, std::size_t) {
                             const auto self = weak.lock();
                             if (failed || !self || self->stopped_) return;
                             self->restart_quiet_timer();
                             self->read();
                           });
}

void FolderWatch::restart_quiet_timer() {
  const auto now = std::chrono::steady_clock::now();
  if (first_ == std::chrono::steady_clock::time_point{}) first_ = now;
  quiet_.expires_at(std::min<std::chrono::steady_clock::time_point>(now + kQuiet, first_ + kMaxDelay));
  quiet_.async_wait([weak = weak_from_this()](const boost::system::error_code& cancelled) {
    const auto self = weak.lock();
    if (cancelled || !self || self->stopped_) return;
    self->first_ = {};
    self->arm_all();
    if (self->changed_) self->changed_();
  });
}

void FolderWatch::poll() {
  again_.expires_after(kPoll);
  again_.async_wait([weak = weak_from_this()](const boost::system::error_code& cancelled) {
    const auto self = weak.lock();
    if (cancelled || !self || self->stopped_) return;
    if (self->changed_) self->changed_();
    self->poll();
  });
}

}  // namespace driftd::host
