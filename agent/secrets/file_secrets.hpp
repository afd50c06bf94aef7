// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/secret_file.hpp"

namespace driftd::secrets {

/// Returns true if a file must be read (again): it is not the file that was read, or the backend refused the secret
/// that was read. A file that cannot be inspected is read too, for the error.
bool must_read(const std::optional<config::FileMark>& was, const std::optional<config::FileMark>& now, bool refused);

/// The secrets of one backend that are stored in files, as they are in use. If a file is missing, cannot be read or is
/// writable by others, the value that was read before stays in use. Core thread, except for look().
class FileSecrets {
 public:
  /// `in_use`: token → bytes, from the load of the config.
  FileSecrets(std::vector<config::FileUse> uses, const std::map<std::string, std::string>& in_use);

  /// A file, and the mark of its last reading.
  struct FileToRead {
    std::filesystem::path file;
    std::optional<config::FileMark> was;
  };
  /// The result of one look at a file.
  struct Found {
    std::optional<config::FileMark> mark;            ///< empty if there is no file
    std::chrono::steady_clock::time_point at;        ///< time of the look
    std::optional<Result<config::SecretText>> read;  ///< empty if the file is unchanged
  };
  std::vector<FileToRead> files_to_read() const;
  /// Inspects each file and reads those that changed; all of them if `refused`, which means that the backend refused a
  /// secret. [any thread]
  static std::vector<Found> look(const std::vector<FileToRead>& files_to_read, bool refused);

  struct FileChanges {
    std::map<std::string, std::string> values;  ///< token → new bytes
    std::vector<std::string> changed;           ///< settings and files of these values
    std::vector<std::string> failing;           ///< new failures, and their consequence
    std::vector<std::string> recovered;
    std::vector<std::string> doubtful;  ///< files that others may replace, newly found
  };
  /// Evaluates `found`, which is in the order of files_to_read(). New content, a missing file or an unfit one counts
  /// only once a second look saw the same `config::kSettleTime` later, because a file that is being written, or being
  /// replaced, may be incomplete.
  FileChanges apply(std::vector<Found> found);
  /// Returns true if a second look is due in `config::kSettleTime`.
  bool unsettled() const;
  /// Returns why an earlier value stays in use. Empty if each file is as it was read.
  std::string fault() const;

 private:
  /// What a look saw and no later look has confirmed yet.
  struct Sight {
    std::optional<config::FileMark> mark;
    std::chrono::steady_clock::time_point first;            ///< first seen so
    std::chrono::steady_clock::time_point unsettled_since;  ///< since then each look differed from the one before
    bool settled = false;
  };
  struct One {
    config::FileUse use;
    std::string text;
    std::optional<config::FileMark> mark;  ///< mark of the last settled reading
    std::string fault, replaced;           ///< `replaced`: who else could replace the file
    std::optional<Sight> sight;
    bool unsettled = false;
  };
  static bool settles(One& one, const Found& found);
  static void set_fault(One& one, const std::string& why, FileChanges& out);
  static void keep_mark(One& one, const config::SecretText& read, FileChanges& out);
  static void apply_one(One& one, Found found, FileChanges& out);

  std::vector<One> all_;
};

}  // namespace driftd::secrets
