// SPDX-License-Identifier: Apache-2.0
#include "check/alloc.hpp"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace driftd::check {
namespace {

// Plain data with constant initialisers can be used before and after everything else of a thread.
thread_local bool armed = false, suspended = false;  // suspended: armed, but inside a HostAllocates
thread_local std::uint64_t seen = 0, fails_at = 0;
std::atomic<long> live{0};

}  // namespace

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
bool owns_malloc() { return false; }

extern "C" {
std::size_t __sanitizer_get_allocated_size(const volatile void* at);
void __sanitizer_malloc_hook(const volatile void*, std::size_t size) {
  live.fetch_add(static_cast<long>(size), std::memory_order_relaxed);
}
void __sanitizer_free_hook(const volatile void* at) {
  live.fetch_sub(static_cast<long>(__sanitizer_get_allocated_size(at)), std::memory_order_relaxed);
}
}
#else
bool owns_malloc() { return true; }

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* at, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* at);
}

namespace {

bool fails() { return armed && ++seen == fails_at; }
long size_of(void* at) { return at == nullptr ? 0 : static_cast<long>(::malloc_usable_size(at)); }

/// Allocates and counts the bytes. Returns NULL if it is this allocation's turn to fail.
template <class F>
void* allocate(F make) {
  if (fails()) return errno = ENOMEM, nullptr;
  void* at = make();
  live.fetch_add(size_of(at), std::memory_order_relaxed);
  return at;
}

}  // namespace

extern "C" {
void* malloc(std::size_t size) {
  return allocate([=] { return __libc_malloc(size); });
}
void* calloc(std::size_t count, std::size_t size) {
  return allocate([=] { return __libc_calloc(count, size); });
}
void* memalign(std::size_t alignment, std::size_t size) {
  return allocate([=] { return __libc_memalign(alignment, size); });
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  void* at = memalign(alignment, size);
  if (at == nullptr) return ENOMEM;
  *out = at;
  return 0;
}
void* realloc(void* at, std::size_t size) {
  if (fails()) return errno = ENOMEM, nullptr;
  const long before = size_of(at);
  void* now = __libc_realloc(at, size);
  if (now != nullptr || size == 0) live.fetch_add(size_of(now) - before, std::memory_order_relaxed);
  return now;
}
void free(void* at) {
  live.fetch_sub(size_of(at), std::memory_order_relaxed);
  __libc_free(at);
}
}
#endif

FailingAllocation::FailingAllocation(std::uint64_t number) {
  seen = 0;
  fails_at = number;
  armed = true;
}
FailingAllocation::~FailingAllocation() { armed = false; }
std::uint64_t FailingAllocation::counted() { return seen; }

long live_bytes() { return live; }

HostAllocates::HostAllocates() : was_(std::exchange(armed, false)) { suspended = was_; }
HostAllocates::~HostAllocates() {
  armed = was_;
  suspended = false;
}

ProviderAllocates::ProviderAllocates() : was_(std::exchange(armed, armed || suspended)) {}
ProviderAllocates::~ProviderAllocates() { armed = was_; }

}  // namespace driftd::check
