// SPDX-License-Identifier: Apache-2.0
#include "simulation/delivery/shared_memory.hpp"

#include <sqlite3.h>
#include <map>
#include <utility>

namespace driftd::sim {

std::shared_ptr<SharedMemory> SharedMemory::of(const std::string& path) {
  static std::map<std::string, std::weak_ptr<SharedMemory>> all;
  std::erase_if(all, [](const auto& one) { return one.second.expired(); });
  auto& known = all[path];
  auto memory = known.lock();
  if (!memory) known = memory = std::make_shared<SharedMemory>();
  return memory;
}

void* SharedMemory::region(int number, int size, bool extend) {
  while (extend && regions_.size() <= static_cast<std::size_t>(number))
    regions_.push_back(std::make_unique<char[]>(static_cast<std::size_t>(size)));
  return static_cast<std::size_t>(number) < regions_.size() ? regions_[static_cast<std::size_t>(number)].get()
                                                            : nullptr;
}

SharedLocks::~SharedLocks() {
  for (int lock = 0; lock < SharedMemory::kLocks; ++lock) release(lock);
}

bool SharedLocks::may_take(int lock, bool exclusive) const {
  const auto at = static_cast<std::size_t>(lock);
  const bool others_exclusive = memory_->exclusive_[at] && !exclusive_[at];
  const bool others_shared = memory_->shared_[at] > (shared_[at] ? 1 : 0);
  return !others_exclusive && !(exclusive && others_shared);
}

void SharedLocks::release(int lock) {
  const auto at = static_cast<std::size_t>(lock);
  if (std::exchange(shared_[at], false)) --memory_->shared_[at];
  if (std::exchange(exclusive_[at], false)) memory_->exclusive_[at] = false;
}

int SharedLocks::change(int first, int count, int flags) {
  const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
  const bool take = (flags & SQLITE_SHM_LOCK) != 0;
  for (int lock = first; take && lock < first + count; ++lock) {
    if (!may_take(lock, exclusive)) return SQLITE_BUSY;
  }
  for (int lock = first; lock < first + count; ++lock) {
    release(lock);
    if (!take) continue;
    const auto at = static_cast<std::size_t>(lock);
    if (exclusive) {
      memory_->exclusive_[at] = exclusive_[at] = true;
    } else {
      ++memory_->shared_[at];
      shared_[at] = true;
    }
  }
  return SQLITE_OK;
}

}  // namespace driftd::sim
