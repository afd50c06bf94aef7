// SPDX-License-Identifier: Apache-2.0
#include "check/alloc.hpp"

#include <cerrno>
#include <cstddef>
#include <utility>

namespace driftd::check {
namespace {

// plain data with constant initialisers: usable before and after everything else of a thread
thread_local bool armed = false;
thread_local std::uint64_t seen = 0, fails_at = 0;

}  // namespace

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
bool can_fail_allocations() { return false; }
#else
bool can_fail_allocations() { return true; }

namespace {
bool fails() { return armed && ++seen == fails_at; }
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* at, std::size_t size);

void* malloc(std::size_t size) {
  if (fails()) return errno = ENOMEM, nullptr;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  if (fails()) return errno = ENOMEM, nullptr;
  return __libc_calloc(count, size);
}
void* realloc(void* at, std::size_t size) {
  if (fails()) return errno = ENOMEM, nullptr;
  return __libc_realloc(at, size);
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

HostAllocates::HostAllocates() : was_(std::exchange(armed, false)) {}
HostAllocates::~HostAllocates() { armed = was_; }

}  // namespace driftd::check
