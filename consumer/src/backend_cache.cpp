// SPDX-License-Identifier: Apache-2.0
#include "backend_cache.hpp"

#include <exception>

namespace driftd::consumer {
namespace {

/// A source is the application's and may throw. The entry must not stay marked as being loaded.
Result<Backend> asked(BackendSource& source, const std::string& backend, const std::string& slot) {
  try {
    return source.get(backend, slot);
  } catch (const std::exception& error) {
    return fail(Code::internal, std::string("the source of backends threw: ") + error.what());
  }
}

}  // namespace

Result<Backend> BackendCache::get(const std::string& backend, const std::string& slot) {
  const Key key{backend, source_.differs_by_slot() ? slot : std::string()};
  std::unique_lock lock(mutex_);
  loaded_.wait(lock, [&] { return loading_.count(key) == 0; });
  const auto found = kept_.find(key);
  if (found != kept_.end()) return found->second;
  loading_.insert(key);
  const std::uint64_t before = invalidations_;
  lock.unlock();
  auto out = asked(source_, backend, slot);
  lock.lock();
  loading_.erase(key);
  if (out && !out->provisional && invalidations_ == before) kept_[key] = *out;
  loaded_.notify_all();
  return out;
}

void BackendCache::invalidate(const std::string& backend) {
  const std::lock_guard lock(mutex_);
  ++invalidations_;
  std::erase_if(kept_, [&backend](const auto& item) { return item.first.first == backend; });
}

void BackendCache::clear() {
  const std::lock_guard lock(mutex_);
  ++invalidations_;
  kept_.clear();
}

}  // namespace driftd::consumer
