// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/secret_file.hpp"

namespace driftd::secrets {

/// Whether a file is read (again): it is another one than the one that was read, or the system refused what was read.
/// Also one that cannot be looked at is read, for the reason.
bool must_read(const std::optional<config::FileMark>& was, const std::optional<config::FileMark>& now, bool refused);

/// The secrets of one backend that stand in files, as they are in use. A file that is gone, cannot be read, or is one
/// that others may write leaves in use what was read before. Core thread, but for look().
class FileSecrets {
 public:
  /// `in_use`: token → bytes, as the config was loaded.
  FileSecrets(std::vector<config::FileUse> uses, const std::map<std::string, std::string>& in_use);

  /// A file, and as of when it was read.
  struct FileToRead {
    std::filesystem::path file;
    std::optional<config::FileMark> was;
  };
  /// What one look saw.
  struct Found {
    std::optional<config::FileMark> mark;            ///< empty: there is no file
    std::chrono::steady_clock::time_point at;        ///< when
    std::optional<Result<config::SecretText>> read;  ///< empty: it is the one that was read before
  };
  std::vector<FileToRead> files_to_read() const;
  /// Looks at each, and reads those that moved; all of them where the system `refused` what is in use. [any thread]
  static std::vector<Found> look(const std::vector<FileToRead>& files_to_read, bool refused);

  struct FileChanges {
    std::map<std::string, std::string> values;  ///< token → bytes that are new
    std::vector<std::string> changed;           ///< which settings and files they are of
    std::vector<std::string> failing;           ///< what began to fail, and what that means
    std::vector<std::string> recovered;
    std::vector<std::string> doubtful;  ///< what others may replace since it was read again
  };
  /// `found` in the order of files_to_read(). What a file says, and that it is gone or unfit, counts once a second look
  /// saw the same one `config::kSettleTime` later: half of what is written in place is nothing, nor is the moment
  /// between two names.
  FileChanges apply(std::vector<Found> found);
  /// A second look is due in `config::kSettleTime`.
  bool unsettled() const;
  /// Why what was read before stays in use; empty: each file is as it was read.
  std::string fault() const;

 private:
  /// What a look saw that no other has confirmed yet.
  struct Sight {
    std::optional<config::FileMark> mark;
    std::chrono::steady_clock::time_point first, restless;  ///< seen so, and another one at each look since then
    bool settled = false;
  };
  struct One {
    config::FileUse use;
    std::string text;
    std::optional<config::FileMark> mark;  ///< of what was read and had settled
    std::string fault, replaced;           ///< `replaced`: who may put another file in its place
    std::optional<Sight> sight;
    bool unsettled = false;
  };
  static bool settles(One& one, const Found& found);
  static void set_fault(One& one, const std::string& why, FileChanges& out);
  static void take_mark(One& one, const config::SecretText& read, FileChanges& out);
  static void apply_one(One& one, Found found, FileChanges& out);

  std::vector<One> all_;
};

}  // namespace driftd::secrets
