// SPDX-License-Identifier: Apache-2.0
#include "terraform/source.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "common/settings_reader.hpp"

namespace driftd::terraform {
namespace {

constexpr int kTries = 5;
constexpr long long kTicksNs = 20'000'000, kSecondsNs = 3'000'000'000;

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

/// Returns a stamp that includes the change time, which no user can set back.
std::string stamp(const struct stat& s) {
  std::string out = std::to_string(s.st_ino) + "." + std::to_string(s.st_size);
  for (const auto& at : {s.st_mtim, s.st_ctim})
    out += "." + std::to_string(at.tv_sec) + "." + std::to_string(at.tv_nsec);
  return out;
}

/// Returns true if another write may still get the same times: Linux before 6.13 counts them in ticks of up to 10 ms,
/// and some file systems in seconds (ext3, ext4 with small inodes) or in two (FAT).
bool young(const struct stat& s) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto since = [&now](const timespec& at) {
    return (now.tv_sec - at.tv_sec) * 1'000'000'000LL + (now.tv_nsec - at.tv_nsec);
  };
  const auto step = s.st_ctim.tv_nsec == 0 && s.st_mtim.tv_nsec == 0 ? kSecondsNs : kTicksNs;
  return since(s.st_ctim) < step && since(s.st_ctim) > -step;
}

[[noreturn]] void refuse(const std::string& path, int error) {
  const std::string text = path + ": " + std::strerror(error);
  if (error == EACCES || error == EPERM) {
    throw sdk::Failure(DRIFTD_DENIED, text, {}, "read access to " + path);
  }
  // A missing state file proves nothing about the resources that it described.
  throw sdk::Failure(DRIFTD_UNAVAILABLE, text + (error == ENOENT ? "; nothing is concluded from a missing state" : ""));
}

/// Passes on what can be read, up to `max_bytes` bytes or the end.
void read_all(sdk::Call& call, int fd, const std::string& path, std::uint64_t max_bytes,
              const std::function<void(std::string_view)>& take) {
  std::string window(256 << 10, '\0');
  for (std::uint64_t at = 0; at < max_bytes;) {
    if (call.cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, path + ": cancelled");
    const ssize_t got = ::read(fd, window.data(), std::min<std::uint64_t>(window.size(), max_bytes - at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(path, errno);
    if (got == 0) break;
    take(std::string_view(window).substr(0, static_cast<std::size_t>(got)));
    at += static_cast<std::uint64_t>(got);
  }
}

std::string folder_of(const std::string& path) { return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)); }
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::int64_t lock_age(const std::string& path) {
  struct stat s {};
  if (::stat((folder_of(path) + "/." + name_of(path) + ".lock.info").c_str(), &s) != 0) return -1;
  return std::max<std::int64_t>(0, ::time(nullptr) - s.st_mtim.tv_sec);
}

/// Returns true if one of the events in the buffer concerns the file.
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

/// A state file of the local backend.
class LocalSource final : public Source {
 public:
  explicit LocalSource(std::string path) : path_(std::move(path)) {}

  Fetched fetch(sdk::Call& call, const std::string& known) override {
    for (int i = 0; i < kTries; ++i) {
      Fetched out;
      out.sent_ns = call.now_ns();
      const Fd file(open_file());
      struct stat before {
      }, after{};
      if (::fstat(file.fd, &before) != 0) refuse(path_, errno);
      if (!S_ISREG(before.st_mode)) throw sdk::Failure(DRIFTD_INVALID, path_ + ": is not a regular file");
      const std::string seen = stamp(before);
      out.unchanged = seen == known;
      if (out.unchanged) return out;
      out.stamp = young(before) ? seen + " young" : seen;  // then it is read once more in any case
      read_all(call, file.fd, path_, UINT64_MAX, [&out](std::string_view bytes) { out.state.write(bytes); });
      out.state.finish();
      out.lock_age_s = lock_age(path_);
      if (::fstat(file.fd, &after) == 0 && stamp(after) == seen) return out;
    }
    throw sdk::Failure(DRIFTD_UNAVAILABLE,
                       path_ + ": changed under each of 5 reads; it is read again in the next cycle");
  }

  Probe probe(sdk::Call& call) override {
    Probe out;
    const Fd file(open_file());
    read_all(call, file.fd, path_, kBeginning, [&out](std::string_view bytes) { out.beginning.append(bytes); });
    return out;
  }

  void watch(sdk::Call& call, const std::function<void()>& changed) override;

 private:
  int open_file() const {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) refuse(path_, errno);
    return fd;
  }
  const std::string path_;
};

/// Blocks on inotify over the file's folder: Terraform replaces the file by rename or writes it in place.
void LocalSource::watch(sdk::Call& call, const std::function<void()>& changed) {
  const Fd notify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (notify.fd < 0) throw sdk::Failure(DRIFTD_UNAVAILABLE, std::string("inotify: ") + std::strerror(errno));
  const std::string folder = folder_of(path_);
  const std::uint32_t events = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_ATTRIB;
  if (::inotify_add_watch(notify.fd, folder.c_str(), events) < 0) refuse(folder, errno);
  const std::string name = name_of(path_);
  changed();  // for changes between the last refresh and now
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

}  // namespace

std::unique_ptr<Source> open_local(const Settings& settings) {
  common::SettingsReader from(settings.backend, "settings.backend");
  from.text("type");
  std::string path = from.required_text("path", "the absolute path of a terraform.tfstate file");
  const std::string workspaces = from.text("workspace_dir");
  from.finish();
  if (path.front() != '/') {
    common::refuse_setting("settings.path", "the absolute path of a terraform.tfstate file", "'" + path + "'",
                           "begin it with /");
  }
  if (settings.workspace != "default") {
    const std::string folder = workspaces.empty() ? folder_of(path) + "/terraform.tfstate.d" : workspaces;
    path = folder + "/" + settings.workspace + "/" + name_of(path);
  }
  return std::make_unique<LocalSource>(std::move(path));
}

}  // namespace driftd::terraform
