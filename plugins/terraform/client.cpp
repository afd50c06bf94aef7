// SPDX-License-Identifier: Apache-2.0
#include "terraform/client.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

namespace driftd::terraform {
namespace {

constexpr std::int64_t kMost = 512ll << 20;
constexpr int kTries = 5;

/// A descriptor that closes itself.
struct Fd {
  explicit Fd(int value) : fd(value) {}
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int fd;
};

std::string stamp(const struct stat& s) {
  return std::to_string(s.st_ino) + "." + std::to_string(s.st_size) + "." + std::to_string(s.st_mtim.tv_sec) + "." +
         std::to_string(s.st_mtim.tv_nsec);
}

[[noreturn]] void refuse(const std::string& path, int error) {
  const std::string text = path + ": " + std::strerror(error);
  if (error == EACCES || error == EPERM) {
    throw sdk::Failure(DRIFTD_DENIED, text, {}, "read access to " + path);
  }
  // A state file that is not there says nothing about the resources that it described.
  throw sdk::Failure(DRIFTD_UNAVAILABLE, text + (error == ENOENT ? "; nothing is concluded from a missing state" : ""));
}

std::string read_whole(sdk::Call& call, int fd, const std::string& path, std::int64_t size) {
  std::string out(static_cast<std::size_t>(size), '\0');
  std::size_t at = 0;
  while (at < out.size()) {
    if (call.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, path + ": cancelled");
    const ssize_t got = ::read(fd, out.data() + at, std::min<std::size_t>(out.size() - at, 1 << 20));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(path, errno);
    if (got == 0) break;
    at += static_cast<std::size_t>(got);
  }
  out.resize(at);
  return out;
}

std::string folder_of(const std::string& path) { return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)); }
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::int64_t lock_age(const std::string& path) {
  struct stat s {};
  if (::stat((folder_of(path) + "/." + name_of(path) + ".lock.info").c_str(), &s) != 0) return -1;
  return std::max<std::int64_t>(0, ::time(nullptr) - s.st_mtim.tv_sec);
}

/// True when one of the events in the buffer concerns the file.
bool concerns(const char* buffer, ssize_t size, const std::string& name) {
  for (ssize_t at = 0; at + static_cast<ssize_t>(sizeof(inotify_event)) <= size;) {
    inotify_event event;
    std::memcpy(&event, buffer + at, sizeof event);
    if ((event.mask & IN_Q_OVERFLOW) != 0) return true;
    if (event.len > 0 && name == buffer + at + sizeof event) return true;
    at += static_cast<ssize_t>(sizeof event) + event.len;
  }
  return false;
}

}  // namespace

std::string stamp_of(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 ? stamp(s) : std::string();
}

Snapshot read_state(sdk::Call& call, const std::string& path) {
  for (int i = 0; i < kTries; ++i) {
    Snapshot out;
    out.read_ns = call.now_ns();
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.fd < 0) refuse(path, errno);
    struct stat before {}, after {};
    if (::fstat(file.fd, &before) != 0) refuse(path, errno);
    if (!S_ISREG(before.st_mode)) throw sdk::Failure(DRIFTD_INVALID, path + ": is no regular file");
    if (before.st_size > kMost) {
      throw sdk::Failure(DRIFTD_BUDGET, path + ": " + std::to_string(before.st_size) + " bytes; at most 512 MiB are read");
    }
    out.text = read_whole(call, file.fd, path, before.st_size);
    out.stamp = stamp(before);
    out.lock_age_s = lock_age(path);
    if (::fstat(file.fd, &after) == 0 && stamp(after) == out.stamp) return out;
  }
  throw sdk::Failure(DRIFTD_UNAVAILABLE, path + ": changed under each of 5 reads; it is read again in the next cycle");
}

void watch_file(sdk::Call& call, const std::string& path, const std::function<void()>& changed) {
  const Fd notify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (notify.fd < 0) throw sdk::Failure(DRIFTD_UNAVAILABLE, std::string("inotify: ") + std::strerror(errno));
  const std::string folder = folder_of(path);
  const std::uint32_t events = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_ATTRIB;
  if (::inotify_add_watch(notify.fd, folder.c_str(), events) < 0) refuse(folder, errno);
  const std::string name = name_of(path);
  changed();  // whatever happened between the last refresh and now
  alignas(inotify_event) char buffer[16 * (sizeof(inotify_event) + NAME_MAX + 1)];
  while (!call.cancelled()) {
    pollfd fds[2] = {{notify.fd, POLLIN, 0}, {call.cancel_fd(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) {
      throw sdk::Failure(DRIFTD_INTERNAL, std::string("poll: ") + std::strerror(errno));
    }
    const ssize_t got = ::read(notify.fd, buffer, sizeof buffer);
    if (got > 0 && concerns(buffer, got, name)) changed();
  }
}

}  // namespace driftd::terraform
