// SPDX-License-Identifier: Apache-2.0
// The memory that SQLite's connections to one database share (its write-ahead log's index), and the locks on it. All
// connections are in this process and in one thread, so that neither a file nor a lock of the system is needed.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace driftd::sim {

/// What the connections to one database share. It ends with the last of them, as after the end of the last process.
class SharedMemory {
 public:
  /// Returns that of this database file; a new one if no connection has any.
  static std::shared_ptr<SharedMemory> of(const std::string& path);

  /// As sqlite3_io_methods::xShmMap: returns nullptr if the region does not exist and `extend` is false.
  void* region(int number, int size, bool extend);

 private:
  friend class SharedLocks;
  static constexpr int kLocks = 8;  // SQLITE_SHM_NLOCK
  std::vector<std::unique_ptr<char[]>> regions_;
  std::array<int, kLocks> shared_{};
  std::array<bool, kLocks> exclusive_{};
};

/// The part of one connection: its locks, which end with it.
class SharedLocks {
 public:
  explicit SharedLocks(std::shared_ptr<SharedMemory> memory) : memory_(std::move(memory)) {}
  ~SharedLocks();
  SharedLocks(const SharedLocks&) = delete;
  SharedLocks& operator=(const SharedLocks&) = delete;

  SharedMemory& memory() { return *memory_; }
  /// As sqlite3_io_methods::xShmLock. Returns an SQLite code.
  int change(int first, int count, int flags);

 private:
  bool may_take(int lock, bool exclusive) const;
  void release(int lock);

  std::shared_ptr<SharedMemory> memory_;
  std::array<bool, SharedMemory::kLocks> shared_{}, exclusive_{};
};

}  // namespace driftd::sim
