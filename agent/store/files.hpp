// SPDX-License-Identifier: Apache-2.0
// The files of data_dir and the rights to them.
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

/// The exclusive right to a data_dir, by flock on its file `lock`, which also names the holder. It ends with the
/// process.
class DirectoryLock {
 public:
  /// `conflict` names the holder.
  static Result<DirectoryLock> take(const std::filesystem::path& data_dir, Nanos now);

 private:
  explicit DirectoryLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

/// Creates data_dir with mode 0700, or removes the rights of group and others from an existing one. Returns `denied` if
/// it belongs to somebody else.
Status prepare_directory(const std::filesystem::path& data_dir);
/// Creates an empty `file` with mode 0600 unless it exists. Refuses one that others may read.
Status prepare_file(const std::filesystem::path& file);
/// Returns `denied`, with the chmod to run, if group or others have any right to the file.
Status check_private(const std::filesystem::path& file);
/// Replaces `file` by `text`, mode 0600, durable (fsync of the file and of its folder).
Status write_private(const std::filesystem::path& file, const std::string& text);
/// Creates `file` with mode 0600, durably. Returns `conflict` if something has that name already; it is not changed.
Status write_new_private(const std::filesystem::path& file, const std::string& text);
/// Returns `invalid`, with the next step, if `target` lies in data_dir, through whatever links, or is a file of it
/// under another name. A path that a user names as output must never replace a store, a key, a lock or a mark.
Status check_outside(const std::filesystem::path& data_dir, const std::filesystem::path& target);
/// Calls fsync on a file or folder.
Status sync(const std::filesystem::path& path);

/// Returns inode and birth time, such as `12 1760000000.000000000`. They survive renames, mounts and reboots; a copy
/// has its own.
Result<std::string> birth_of(const std::filesystem::path& file);

/// Checks that files are still the ones that were opened: what is written to a removed file is lost when the process
/// ends.
class WatchedFiles {
 public:
  /// Watches the file as it is now. A missing file is not watched.
  void add(const std::filesystem::path& file);
  /// Returns what happened to which file. Empty if nothing did.
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
