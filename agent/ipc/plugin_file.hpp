// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace driftd::ipc {

/// A plugin's file. It is opened once, then checked and loaded by its descriptor, never by its path again. Owns the
/// descriptor. One thread; the sealed bytes may be read by any.
class PluginFile {
 public:
  /// Equal keys mean: the same file, not written since.
  struct Key {
    std::uint64_t device = 0, inode = 0;
    std::int64_t mtime_ns = 0, size = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  /// Returns `denied` if others may write the file or a folder above it, and `invalid` if it cannot be read, is not a
  /// regular file or has more than 1 GiB. Does not block on a FIFO.
  static Result<PluginFile> open(const std::filesystem::path& file);
  /// Opens and seals. Reads the whole file: not on the core thread.
  static Result<PluginFile> open_sealed(const std::filesystem::path& file);
  /// Takes ownership of a descriptor that open_sealed() made in another process, or of a copy of it. `path` is for
  /// people.
  static Result<PluginFile> adopt(std::string path, int descriptor);
  ~PluginFile();
  PluginFile(PluginFile&& other) noexcept;
  PluginFile& operator=(PluginFile&&) = delete;

  /// Replaces the file by a copy of its present bytes in memory that nobody can change (memfd_create(2), sealed).
  Status seal();
  const std::string& sha256() const { return sha256_; }  ///< lower-case hex; empty if not sealed
  int descriptor() const { return fd_; }
  const Key& key() const { return key_; }
  const std::string& path() const { return path_; }  ///< as given to open() or adopt()
  std::string load_name() const;                     ///< for dlopen; valid as long as this object lives

 private:
  PluginFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status identify();
  std::string path_, sha256_;
  int fd_ = -1;
  bool sealed_ = false;
  Key key_;
};

/// Returns `denied` if a user other than root and this process's user could replace what is loaded: the file, or a
/// folder or link on the way to it, has another owner or other writers.
Status check_file_rights(const std::filesystem::path& file);

}  // namespace driftd::ipc
