// SPDX-License-Identifier: Apache-2.0
// What lies in data_dir and who may touch it.
#pragma once

#include <sys/types.h>
#include <filesystem>
#include <string>
#include <vector>

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
/// Makes `file`, mode 0600, durable. `conflict`: something has that name already, and stays.
Status write_new_private(const std::filesystem::path& file, const std::string& text);
/// `invalid` with the next step when `target` lies in data_dir, through whatever links, or is a file of it under
/// another name: what a user has written to a path must never replace a store, a key, a lock or a mark.
Status check_outside(const std::filesystem::path& data_dir, const std::filesystem::path& target);
/// fsync of a file or of a folder.
Status sync(const std::filesystem::path& path);

/// Inode and time of birth, `12 1760000000.000000000`: stays through renames, mounts and reboots, a copy has its own.
Result<std::string> birth_of(const std::filesystem::path& file);

/// Files that must stay the ones that were opened: what is written to a file without a name is gone with the process.
class WatchedFiles {
 public:
  /// Takes the file as it is now; one that is not there is not watched.
  void add(const std::filesystem::path& file);
  /// Empty, or what happened to which file.
  std::string moved() const;

 private:
  struct File {
    std::filesystem::path path;
    dev_t device = 0;
    ino_t inode = 0;
  };
  std::vector<File> files_;
};

}  // namespace driftd::store
