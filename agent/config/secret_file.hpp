// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "config/rights.hpp"

namespace driftd::config {

/// A `${file:…}` or `${credential:…}` in the settings of a backend. It is read when the config is loaded and followed
/// from then on.
struct FileUse {
  std::string backend, setting;  ///< `orders`, `auth.password`
  std::string token;             ///< replaces the text in the backend's settings
  std::filesystem::path file;    ///< absolute
  friend bool operator==(const FileUse&, const FileUse&) = default;
};

/// Identifies a version of a file that a path leads to, following every link. The inode differs if the file was
/// replaced by a rename or if a link on the path was switched (`..data` of a mounted Kubernetes Secret). The times
/// differ if the file was written in place or its permissions changed.
struct FileMark {
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = 0, written_ns = 0, changed_ns = 0;
  bool regular = false;  ///< false for a pipe, which is read only once: a second read would wait for a writer
  friend bool operator==(const FileMark&, const FileMark&) = default;
};
/// Returns nothing if there is no such file. Accesses the file system. [any thread]
std::optional<FileMark> mark_of(const std::filesystem::path& file);

/// A file that is written in place may be read half. It has settled if its mark is the same after this time.
constexpr std::chrono::milliseconds kSettleTime{250};
/// A file that does not settle within this time is reported as an error.
constexpr std::chrono::milliseconds kMaxSettleTime{3'000};
Error unsettled_error(const std::filesystem::path& file);

struct SecretText {
  std::string text;    ///< without its trailing newline
  FileMark mark;       ///< the same before and after it was read
  Rights rights = {};  ///< what others may do with the opened file
};
/// Returns the warning that others may replace the file, with the reason.
std::string replaceable_warning(const std::filesystem::path& file, const Rights& rights);
/// Reads a file that only root and this process's user may write (config/rights.hpp). Returns `unavailable` if it
/// cannot be read, `denied` if others may write it, `invalid` if it is empty or larger than 64 KiB. Each message starts
/// with `secret file PATH`, and none contains the file's text. A file written within the last second is read again
/// until it has settled or `kMaxSettleTime` has passed; `wait` is called between the reads (if empty, the thread
/// sleeps). [any thread]
Result<SecretText> read_secret_file(const std::filesystem::path& file,
                                    const std::function<void(std::chrono::milliseconds)>& wait = {});
/// Does the same, but returns `invalid` for a FIFO or device, which it never waits for.
Result<SecretText> read_regular_secret_file(const std::filesystem::path& file);
/// Reads a followed file once. Returns `invalid` if it is not a regular file any more. The caller must check whether it
/// has settled. Never waits for a writer. [any thread]
Result<SecretText> reread_secret_file(const std::filesystem::path& file);

}  // namespace driftd::config
