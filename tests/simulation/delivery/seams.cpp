// SPDX-License-Identifier: Apache-2.0
#include "simulation/delivery/seams.hpp"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <map>
#include <random>
#include <string>

#include "simulation/delivery/disk.hpp"
#include "simulation/delivery/simulated_time.hpp"

namespace driftd::sim {
namespace {

constexpr Nanos kBeginning = 1'790'000'000'000'000'000;
constexpr Time kFirst{std::chrono::hours(24)};

std::mt19937_64& random_bytes() {
  static std::mt19937_64 source;
  return source;
}

/// The paths of files that our objects opened by name, by descriptor.
std::map<int, std::string>& opened_paths() {
  static std::map<int, std::string> all;
  return all;
}

std::string path_of(int descriptor) {
  const auto known = opened_paths().find(descriptor);
  if (known != opened_paths().end()) return known->second;
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
  return {path, size > 0 ? static_cast<std::size_t>(size) : 0};
}

}  // namespace

void seed_random_bytes(std::uint64_t seed) {
  random_bytes().seed(seed);
  sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, static_cast<int>(seed % 2'000'000'000 + 1), nullptr);
}

SimulatedTime& SimulatedTime::get() {
  static SimulatedTime time;
  return time;
}

void SimulatedTime::begin_again() {
  forget_timers();
  now_ = kFirst;
}

void SimulatedTime::move_to(Time to) { now_ = std::max(now_, to); }

std::optional<Time> SimulatedTime::next_timer() const {
  std::optional<Time> next;
  for (const auto& [descriptor, due] : timers_) {
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

std::optional<bool> SimulatedTime::is_due(int descriptor) const {
  const auto found = timers_.find(descriptor);
  if (found == timers_.end()) return std::nullopt;
  return found->second && *found->second <= now_;
}

void SimulatedTime::set_timer(int descriptor, std::optional<Duration> in) {
  timers_[descriptor] = in ? std::optional(now_ + *in) : std::nullopt;
}

Nanos SimulatedClock::wall() const { return kBeginning + (SimulatedTime::get().now() - kFirst).count(); }

}  // namespace driftd::sim

// The names that the linker gives to the functions that take the place of others. NOLINTBEGIN
extern "C" {

std::chrono::steady_clock::time_point __wrap__ZNSt6chrono3_V212steady_clock3nowEv() {
  return driftd::sim::SimulatedTime::get().now();
}

[[noreturn]] void __wrap__ZN6driftd11end_processEi(int status) { throw driftd::sim::ProcessEnded{status}; }

int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, mode_t mode) {
  const int descriptor = __real_open(path, flags, mode);
  if (descriptor >= 0) driftd::sim::opened_paths()[descriptor] = path;
  return descriptor;
}

int __real_close(int descriptor);
int __wrap_close(int descriptor) {
  driftd::sim::opened_paths().erase(descriptor);
  return __real_close(descriptor);
}

int __wrap_fsync(int descriptor) {
  if (driftd::sim::Disk::sync_plain(driftd::sim::path_of(descriptor))) return 0;
  errno = EIO;
  return -1;
}

ssize_t __real_pread(int descriptor, void* bytes, size_t size, off_t at);
ssize_t __wrap_pread(int descriptor, void* bytes, size_t size, off_t at) {
  const auto read = driftd::sim::Disk::read_plain(driftd::sim::path_of(descriptor), static_cast<char*>(bytes),
                                                  static_cast<std::int64_t>(size), at);
  return read ? static_cast<ssize_t>(*read) : __real_pread(descriptor, bytes, size, at);
}

ssize_t __real_pwrite(int descriptor, const void* bytes, size_t size, off_t at);
ssize_t __wrap_pwrite(int descriptor, const void* bytes, size_t size, off_t at) {
  const bool taken = driftd::sim::Disk::write_plain(driftd::sim::path_of(descriptor), static_cast<const char*>(bytes),
                                                    static_cast<std::int64_t>(size), at);
  return taken ? static_cast<ssize_t>(size) : __real_pwrite(descriptor, bytes, size, at);
}

/// The store knows its file by inode and birth; what survives a power loss is written to another one.
int __real_statx(int folder, const char* path, int flags, unsigned mask, struct statx* out);
int __wrap_statx(int folder, const char* path, int flags, unsigned mask, struct statx* out) {
  const int code = __real_statx(folder, path, flags, mask, out);
  out->stx_ino = 1;
  out->stx_btime = {};
  return code;
}

int __wrap_RAND_bytes(unsigned char* bytes, int size) {
  for (int i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(driftd::sim::random_bytes()());
  return 1;
}

}  // extern "C" NOLINTEND
