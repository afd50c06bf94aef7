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

/// A `${file:…}` or `${credential:…}` in the settings of a backend: read when the config is loaded, and followed from
/// then on.
struct FileUse {
  std::string backend, setting;  ///< `orders`, `auth.password`
  std::string token;             ///< stands for the text in the backend's settings
  std::filesystem::path file;    ///< absolute
  friend bool operator==(const FileUse&, const FileUse&) = default;
};

/// Which file the kernel reaches by a path, through every link, and as of when: another inode where it was replaced by
/// rename or where a link on the way was switched (`..data` of a mounted Kubernetes Secret), other times where it was
/// written in place or its rights changed.
struct FileMark {
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = 0, written_ns = 0, changed_ns = 0;
  bool regular = false;  ///< a pipe is read once: to read it again would wait for somebody who writes
  friend bool operator==(const FileMark&, const FileMark&) = default;
};
/// Empty where there is no such file. Looks at the file system. [any thread]
std::optional<FileMark> mark_of(const std::filesystem::path& file);

/// What is written in place may be read half. A file has settled when it is the same one, by its mark, this much later.
constexpr std::chrono::milliseconds kSettleTime{250};
/// One that never is for this long is told as a fault.
constexpr std::chrono::milliseconds kMaxSettleTime{3'000};
Error unsettled_error(const std::filesystem::path& file);

struct SecretText {
  std::string text;    ///< without its trailing newline
  FileMark mark;       ///< the same before and after it was read
  Rights rights = {};  ///< of what was opened
};
/// That others may put another file in its place, and why.
std::string replaceable_warning(const std::filesystem::path& file, const Rights& rights);
/// Reads a file that only root and this process's user may write (config/rights.hpp). `unavailable`: it cannot be read,
/// and why; `denied`: others may write it; `invalid`: it is empty or above 64 KiB. Each message begins with `secret
/// file PATH`, and none holds what stands in it. One that was written within the last second is read again until it has
/// settled, for `kMaxSettleTime` at most; `wait` passes the time between. [any thread]
Result<SecretText> read_secret_file(const std::filesystem::path& file,
                                    const std::function<void(std::chrono::milliseconds)>& wait = {});
/// The same once, of one that is followed: `invalid` where it is no regular file (any more), whatever it was when it
/// was looked at. Whether it has settled is for the caller to see. It waits for nobody who writes. [any thread]
Result<SecretText> reread_secret_file(const std::filesystem::path& file);

}  // namespace driftd::config
