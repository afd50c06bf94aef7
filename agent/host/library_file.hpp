// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace driftd::host {

/// A plugin's file, opened once, checked by its descriptor and loaded by it: never by its path again. Owns the
/// descriptor. One thread.
class LibraryFile {
 public:
  /// What makes a file another one, and the pin that its bytes had to meet.
  struct Key {
    std::uint64_t device = 0, inode = 0;
    std::int64_t mtime_ns = 0, size = 0;
    std::string sha256;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  /// `denied` when others may write the file or a folder above it, or when its bytes are not those of the pin (64 hex
  /// digits; empty: none); `invalid` when it cannot be read. With a pin the bytes are copied into memory that nobody can
  /// change, and hashed there.
  static Result<LibraryFile> open(const std::filesystem::path& file, const std::string& sha256);
  ~LibraryFile();
  LibraryFile(LibraryFile&& other) noexcept;
  LibraryFile& operator=(LibraryFile&&) = delete;

  /// Goes on with a copy of the bytes as they are now.
  Status copy();
  bool copied() const { return copied_; }
  int descriptor() const { return fd_; }
  const Key& key() const { return key_; }
  const std::string& path() const { return path_; }  ///< as it was asked for
  std::string load_name() const;                     ///< for dlopen; good as long as this object lives

 private:
  LibraryFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status check_pin() const;
  std::string path_;
  int fd_ = -1;
  bool copied_ = false;
  Key key_;
};

/// `denied` when somebody else than root and this process's user could replace what is loaded: the file, or a folder or
/// link on the way to it, is not theirs or has other writers.
Status check_file_rights(const std::filesystem::path& file);

}  // namespace driftd::host
