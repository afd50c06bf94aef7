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
  /// Equal keys mean: the same file, not written since. By this, and not by its path, a loaded library is found again.
  struct Key {
    std::uint64_t device = 0, inode = 0;
    std::int64_t mtime_ns = 0, size = 0;  ///< nanoseconds since the epoch; bytes
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  /// Returns `denied` if others may write the file or a folder above it, and `invalid` if it cannot be read, is not a
  /// regular file or has more than 1 GiB. Does not block on a FIFO.
  static Result<PluginFile> open(const std::filesystem::path& file);
  /// Opens and seals; fails as open() and seal() do. Reads the whole file: not on the core thread.
  static Result<PluginFile> open_sealed(const std::filesystem::path& file);
  /// Takes ownership of a descriptor that open_sealed() made in another process, or of a copy of it. `path` is for
  /// people. Returns `invalid`, and closes the descriptor, if it cannot be examined or has more than 1 GiB. The result
  /// has no sha256().
  static Result<PluginFile> adopt(std::string path, int descriptor);
  ~PluginFile();
  PluginFile(PluginFile&& other) noexcept;
  PluginFile& operator=(PluginFile&&) = delete;

  /// Replaces the file by a copy of its present bytes in memory that nobody can change (memfd_create(2), sealed).
  /// Does nothing if that was done. Returns `invalid` if there is no memory for it or the file is empty.
  Status seal();
  const std::string& sha256() const { return sha256_; }  ///< lower-case hex; empty if not sealed
  int descriptor() const { return fd_; }                 ///< stays owned by this object; of the copy if sealed
  const Key& key() const { return key_; }                ///< of what was opened or adopted, also after seal()
  const std::string& path() const { return path_; }      ///< as given to open() or adopt()
  std::string load_name() const;                         ///< for dlopen; valid as long as this object lives

 private:
  PluginFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status identify();  ///< fills key_
  std::string path_, sha256_;
  int fd_ = -1;
  bool sealed_ = false;
  Key key_;
};

/// Returns `denied` if a user other than root and this process's user could replace what is loaded: the file, or a
/// folder or link on the way to it, has another owner or other writers. Returns `invalid` if the file cannot be opened
/// or is not a regular file. Reads no content.
Status check_file_rights(const std::filesystem::path& file);

}  // namespace driftd::ipc
