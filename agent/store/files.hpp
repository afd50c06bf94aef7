// SPDX-License-Identifier: Apache-2.0
// What lies in data_dir and who may touch it.
#pragma once

#include <filesystem>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace driftd::store {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return fd_; }

 private:
  int fd_;
};

/// The exclusive right to a data_dir, by flock on `lock`; the file tells others who holds it. Ends with the process.
class DirectoryLock {
 public:
  /// `conflict` names the holder.
  static Result<DirectoryLock> take(const std::filesystem::path& data_dir, Nanos now);

 private:
  explicit DirectoryLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

/// Makes data_dir with mode 0700, or takes group's and others' rights away from an existing one. `denied` when it
/// belongs to somebody else.
Status prepare_directory(const std::filesystem::path& data_dir);
/// Makes `file` empty with mode 0600 unless it is there, and refuses one that others may read.
Status prepare_file(const std::filesystem::path& file);
/// `denied` with the chmod to run when group or others have any right to it.
Status check_private(const std::filesystem::path& file);
/// Replaces `file` by `text`, mode 0600, durable (fsync of the file and of its folder).
Status write_private(const std::filesystem::path& file, const std::string& text);
/// fsync of a file or of a folder.
Status sync(const std::filesystem::path& path);

}  // namespace driftd::store
