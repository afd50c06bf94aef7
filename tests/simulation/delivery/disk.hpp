// SPDX-License-Identifier: Apache-2.0
// A disk that keeps apart what was synced and what was only written.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "simulation/delivery/simulated_time.hpp"

namespace driftd::sim {

/// What a power loss leaves of writes that were not synced.
enum class Survival {
  nothing,     ///< none of them
  everything,  ///< all of them
  some         ///< a random subset of their sectors, some of them torn
};

/// The files of one folder. What the database and its logs hold is kept here, and SQLite reads and writes it through
/// the VFS `driftd-simulation` (vfs.cpp), which is the default of this process: an hour of an agent would else spend a
/// third of its time in calls of the system. In the folder (on a tmpfs, as a rule) they are holes of the same size.
/// Beside it the disk keeps what would be left of each file after a power loss. Plain files (lock, mark) are compared
/// when they are synced. One thread.
class Disk {
 public:
  enum class Answer { done, io_error, full };
  /// Chances of a failure for one call.
  struct Faults {
    double sync_fails = 0, read_fails = 0, write_fails = 0;
    bool full = false;  ///< no file grows
    Duration sync_takes{std::chrono::milliseconds(2)};
  };

  Disk(std::string folder, std::uint64_t seed);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  Faults faults;
  bool loses_power = true;  ///< false: nobody will ask what a power loss leaves, so that it need not be kept
  std::function<void()> before_change;  ///< called before each write, truncate, delete and sync of SQLite

  const std::string& folder() const { return folder_; }
  /// Lets each call of open files fail from now on and change nothing, as after SIGKILL of their process.
  void kill() { dead_ = true; }
  /// A new process may use the disk. To be called when every file is closed.
  void boot() { dead_ = false; }
  /// Cuts the power: replaces the files by what survives. To be called when every file is closed.
  void lose_power();
  /// Puts these files there, all of them synced. To be called when it has none.
  void install(const std::map<std::string, std::string>& files);
  /// Rises whenever that changes which a power loss leaves for sure.
  std::uint64_t durable_changes() const { return durable_changes_; }
  /// Returns what a power loss now would leave, by file name.
  std::map<std::string, std::string> after_power_loss(Survival survival);
  /// Returns the time that the syncs since the last call took.
  Duration take_latency() { return std::exchange(latency_, Duration{0}); }
  std::uint64_t syncs() const { return syncs_; }      ///< of SQLite's files
  std::uint64_t changes() const { return changes_; }  ///< writes, truncates, deletes and syncs so far

  /// Returns the disk of a file, nullptr if it is on none.
  static Disk* of(const std::string& path);
  /// Syncs a plain file or a folder. Returns false if the disk failed.
  static bool sync_plain(const std::string& path);
  /// Somebody reads or writes a file without SQLite. Empty if it is no database or log of a disk: a plain file.
  static std::optional<std::int64_t> read_plain(const std::string& path, char* to, std::int64_t size, std::int64_t at);
  static bool write_plain(const std::string& path, const char* from, std::int64_t size, std::int64_t at);

  // Called by the VFS, with file names in the folder.
  Answer before_read();
  /// Returns the number of bytes that were there to read.
  std::int64_t read(const std::string& name, char* to, std::int64_t size, std::int64_t at);
  Answer write(const std::string& name, const char* from, std::int64_t size, std::int64_t at);
  Answer truncate(const std::string& name, std::int64_t size);
  std::int64_t size_of(const std::string& name) const;
  /// A handle of the file was closed: gives the file in the folder its size.
  void closed(const std::string& name);
  /// `new_name`: the first sync of a file that this process created, which syncs the folder as well.
  Answer sync(const std::string& name, bool new_name);
  Answer before_remove();
  void created(const std::string& name);
  void removed(const std::string& name, bool folder_synced);

 private:
  struct Change {
    std::int64_t offset = 0;           ///< of a write; the new size of a truncate
    std::optional<std::string> bytes;  ///< empty: a truncate
  };
  struct File {
    bool exists = false, name_synced = false;
    std::optional<std::string> former;  ///< content of the file that had this name before, whose removal is not synced
    std::string live;                   ///< as a process reads it; of a database and its logs only
    std::string synced;                 ///< as it is after a power loss
    std::vector<Change> changes;        ///< since the last sync, in order
  };

  bool chance(double of);
  Answer begin_change();
  void sync_folder();
  void look_at_plain_files();
  std::string survivors(const File& file, Survival survival);
  void apply(std::string& content, const Change& change, Survival survival, double keep);

  void put(const std::string& name, const char* from, std::int64_t size, std::int64_t at);

  std::string folder_;
  std::mt19937_64 random_;
  std::map<std::string, File> files_;
  bool dead_ = false;
  Duration latency_{0};
  std::uint64_t changes_ = 0, durable_changes_ = 0, syncs_ = 0;
};

/// Registers the VFS as SQLite's default. To be called before SQLite is used; does nothing the second time.
void register_vfs();

}  // namespace driftd::sim
