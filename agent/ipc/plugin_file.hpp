// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace driftd::ipc {

/// A plugin's file, opened once, checked by its descriptor and loaded by it: never by its path again. Owns the
/// descriptor. One thread; what is sealed may be read by any.
class PluginFile {
 public:
  /// What makes a file another one.
  struct Key {
    std::uint64_t device = 0, inode = 0;
    std::int64_t mtime_ns = 0, size = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  /// `denied` when others may write the file or a folder above it; `invalid` when it cannot be read, is no regular file
  /// or has more than 1 GiB. Never waits for a writer.
  static Result<PluginFile> open(const std::filesystem::path& file);
  /// The same with seal() behind it. Reads all of the file: not on the core thread.
  static Result<PluginFile> open_sealed(const std::filesystem::path& file);
  /// Takes over the descriptor of what open_sealed() made in another process, or a copy of it. `path` is for people.
  static Result<PluginFile> adopt(std::string path, int descriptor);
  ~PluginFile();
  PluginFile(PluginFile&& other) noexcept;
  PluginFile& operator=(PluginFile&&) = delete;

  /// Goes on with a copy of the bytes as they are now, in memory that nobody can change (memfd_create(2), sealed).
  Status seal();
  const std::string& sha256() const { return sha256_; }  ///< of the sealed bytes, lower-case hex; empty: not sealed
  int descriptor() const { return fd_; }
  const Key& key() const { return key_; }
  const std::string& path() const { return path_; }  ///< as it was asked for
  std::string load_name() const;                     ///< for dlopen; good as long as this object lives

 private:
  PluginFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status identify();
  std::string path_, sha256_;
  int fd_ = -1;
  bool sealed_ = false;
  Key key_;
};

/// `denied` when somebody else than root and this process's user could replace what is loaded: the file, or a folder or
/// link on the way to it, is not theirs or has other writers.
Status check_file_rights(const std::filesystem::path& file);

}  // namespace driftd::ipc
