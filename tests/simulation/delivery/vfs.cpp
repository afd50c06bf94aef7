// SPDX-License-Identifier: Apache-2.0
// The VFS `driftd-simulation`: names, locks and everything that is on no simulated disk are of SQLite's own one; what
// files of a disk hold is kept by it.
#include <sqlite3.h>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "simulation/delivery/disk.hpp"
#include "simulation/delivery/memory.hpp"
#include "simulation/delivery/shared_memory.hpp"

namespace driftd::sim {
namespace {

/// An open file; SQLite allocates it, with the real one behind it.
struct OpenFile {
  sqlite3_file base;
  Disk* disk;         ///< nullptr: on no simulated disk
  std::string* name;  ///< in the folder of the disk
  std::string* path;
  SharedLocks* shared;  ///< nullptr: it uses no shared memory yet
  bool new_name;        ///< the first sync of a journal or log that was created syncs the folder, too
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

OpenFile& self(sqlite3_file* file) { return *reinterpret_cast<OpenFile*>(file); }
const sqlite3_io_methods& real(sqlite3_file* file) { return *self(file).real()->pMethods; }
sqlite3_vfs& real_vfs(sqlite3_vfs* vfs) { return *static_cast<sqlite3_vfs*>(vfs->pAppData); }

int code_of(Disk::Answer answer, int io_error) {
  if (answer == Disk::Answer::full) return SQLITE_FULL;
  return answer == Disk::Answer::done ? SQLITE_OK : io_error;
}

int close_file(sqlite3_file* file) {
  OpenFile& open = self(file);
  const int code = real(file).xClose(open.real());
  if (open.disk != nullptr) open.disk->closed(*open.name);
  delete open.name;
  delete open.path;
  delete open.shared;
  open.name = open.path = nullptr;
  open.shared = nullptr;
  return code;
}

int read_from(sqlite3_file* file, void* to, int size, sqlite3_int64 at) {
  OpenFile& open = self(file);
  if (open.disk == nullptr) return real(file).xRead(open.real(), to, size, at);
  if (open.disk->before_read() != Disk::Answer::done) return SQLITE_IOERR_READ;
  const auto read = open.disk->read(*open.name, static_cast<char*>(to), size, at);
  if (read == size) return SQLITE_OK;
  std::memset(static_cast<char*>(to) + read, 0, static_cast<std::size_t>(size - read));
  return SQLITE_IOERR_SHORT_READ;
}

int write_to(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  OpenFile& open = self(file);
  if (open.disk == nullptr) return real(file).xWrite(open.real(), from, size, at);
  return code_of(open.disk->write(*open.name, static_cast<const char*>(from), size, at), SQLITE_IOERR_WRITE);
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  OpenFile& open = self(file);
  if (open.disk == nullptr) return real(file).xTruncate(open.real(), size);
  return code_of(open.disk->truncate(*open.name, size), SQLITE_IOERR_TRUNCATE);
}

int sync_file(sqlite3_file* file, int) {
  OpenFile& open = self(file);
  if (open.disk == nullptr) return SQLITE_OK;
  return code_of(open.disk->sync(*open.name, std::exchange(open.new_name, false)), SQLITE_IOERR_FSYNC);
}

int size_of_file(sqlite3_file* file, sqlite3_int64* size) {
  OpenFile& open = self(file);
  if (open.disk == nullptr) return real(file).xFileSize(open.real(), size);
  *size = open.disk->size_of(*open.name);
  return SQLITE_OK;
}
int lock(sqlite3_file* file, int level) { return real(file).xLock(self(file).real(), level); }
int unlock(sqlite3_file* file, int level) { return real(file).xUnlock(self(file).real(), level); }
int is_reserved(sqlite3_file* file, int* out) { return real(file).xCheckReservedLock(self(file).real(), out); }
int sector_size(sqlite3_file* file) { return real(file).xSectorSize(self(file).real()); }
int characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }
int shm_lock(sqlite3_file* file, int at, int count, int flags) { return self(file).shared->change(at, count, flags); }
void shm_barrier(sqlite3_file*) {}
int shm_unmap(sqlite3_file* file, int) {
  delete self(file).shared;
  self(file).shared = nullptr;
  return SQLITE_OK;
}
int shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  OpenFile& open = self(file);
  if (open.shared == nullptr) open.shared = new SharedLocks(SharedMemory::of(*open.path));
  *out = open.shared->memory().region(page, size, extend != 0);
  return SQLITE_OK;
}

/// Growing a file in advance is not passed on: the disk would not see it.
int control(sqlite3_file* file, int operation, void* argument) {
  if (operation == SQLITE_FCNTL_SIZE_HINT || operation == SQLITE_FCNTL_CHUNK_SIZE) return SQLITE_OK;
  return real(file).xFileControl(self(file).real(), operation, argument);
}

constexpr sqlite3_io_methods kMethods = {
    2,        close_file,  read_from,   write_to, truncate_file, sync_file,       size_of_file,
    lock,     unlock,      is_reserved, control,  sector_size,   characteristics, shm_map,
    shm_lock, shm_barrier, shm_unmap,   nullptr,  nullptr};

int open_file(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out) {
  OpenFile& open = self(file);
  open.base.pMethods = nullptr;
  open.disk = path == nullptr ? nullptr : Disk::of(path);
  open.name = open.path = nullptr;
  open.shared = nullptr;
  open.new_name = false;
  const bool was_there = path != nullptr && std::filesystem::exists(path);
  const int code = real_vfs(vfs).xOpen(&real_vfs(vfs), path, open.real(), flags, out);
  if (code != SQLITE_OK) return code;
  open.base.pMethods = &kMethods;
  open.path = new std::string(path == nullptr ? "" : path);
  if (open.disk == nullptr) return code;
  open.name = new std::string(std::filesystem::path(path).filename());
  open.new_name = !was_there && (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
  if (!was_there) open.disk->created(*open.name);
  return code;
}

int remove_file(sqlite3_vfs* vfs, const char* path, int sync_folder) {
  Disk* const disk = Disk::of(path);
  if (disk != nullptr && disk->before_remove() != Disk::Answer::done) return SQLITE_IOERR_DELETE;
  const int code = real_vfs(vfs).xDelete(&real_vfs(vfs), path, 0);
  if (code == SQLITE_OK && disk != nullptr) disk->removed(std::filesystem::path(path).filename(), sync_folder != 0);
  return code;
}

int access_file(sqlite3_vfs* vfs, const char* path, int flags, int* out) {
  Disk* const disk = Disk::of(path);
  if (disk != nullptr && flags == SQLITE_ACCESS_EXISTS) {  // an empty file is none, as in SQLite's own VFS
    *out = disk->size_of(std::filesystem::path(path).filename()) > 0 ? 1 : 0;
    return SQLITE_OK;
  }
  return real_vfs(vfs).xAccess(&real_vfs(vfs), path, flags, out);
}

int full_path(sqlite3_vfs* vfs, const char* path, int size, char* out) {
  return real_vfs(vfs).xFullPathname(&real_vfs(vfs), path, size, out);
}

/// Nobody is waited for in one thread: a lock that is held stays held.
int pass_time(sqlite3_vfs*, int micros) { return micros; }

int fill_random(sqlite3_vfs*, int size, char* out) {
  std::memset(out, 7, static_cast<std::size_t>(size));
  return size;
}

int current_time(sqlite3_vfs*, sqlite3_int64* out) {
  constexpr sqlite3_int64 kUnixEpochAsJulianMillis = 210'866'760'000'000;
  *out = kUnixEpochAsJulianMillis + SimulatedClock().wall() / 1'000'000;
  return SQLITE_OK;
}

}  // namespace

void register_vfs() {
  static sqlite3_vfs vfs;
  if (vfs.zName != nullptr) return;
  sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);  // no locks: there is one thread
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  give_sqlite_memory();
  sqlite3_vfs* const usual = sqlite3_vfs_find(nullptr);
  vfs = *usual;
  vfs.zName = "driftd-simulation";
  vfs.pAppData = usual;
  vfs.pNext = nullptr;
  vfs.szOsFile = usual->szOsFile + static_cast<int>(sizeof(OpenFile));
  vfs.xOpen = open_file;
  vfs.xDelete = remove_file;
  vfs.xAccess = access_file;
  vfs.xFullPathname = full_path;
  vfs.xSleep = pass_time;
  vfs.xRandomness = fill_random;
  vfs.xCurrentTimeInt64 = current_time;
  sqlite3_vfs_register(&vfs, 1);
}

}  // namespace driftd::sim
