// SPDX-License-Identifier: Apache-2.0
#include "support/heap/heap.hpp"

#include <malloc.h>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace driftd::test {
namespace {

std::atomic<std::ptrdiff_t> held{0}, peak{0}, start{0};
std::atomic<std::ptrdiff_t> limit{std::numeric_limits<std::ptrdiff_t>::max()};

void* allocate(std::size_t size) {
  if (held.load() + static_cast<std::ptrdiff_t>(size) > limit.load()) throw std::bad_alloc();
  void* out = std::malloc(std::max<std::size_t>(size, 1));
  if (out == nullptr) throw std::bad_alloc();
  const auto now = held += static_cast<std::ptrdiff_t>(malloc_usable_size(out));
  auto seen = peak.load();
  while (now > seen && !peak.compare_exchange_weak(seen, now)) {
  }
  return out;
}

void* try_allocate(std::size_t size) noexcept {
  try {
    return allocate(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void release(void* at) noexcept {
  if (at != nullptr) held -= static_cast<std::ptrdiff_t>(malloc_usable_size(at));
  std::free(at);
}

}  // namespace

HeapPeak::HeapPeak() {
  start = held.load();
  peak = held.load();
}
HeapPeak::~HeapPeak() = default;
std::size_t HeapPeak::bytes() const { return static_cast<std::size_t>(std::max<std::ptrdiff_t>(peak - start, 0)); }

HeapLimit::HeapLimit(std::size_t bytes) { limit = held.load() + static_cast<std::ptrdiff_t>(bytes); }
HeapLimit::~HeapLimit() { limit = std::numeric_limits<std::ptrdiff_t>::max(); }

}  // namespace driftd::test

// Every operator but the aligned ones. The nothrow ones are needed because std::stable_sort uses them: memory of a
// sanitizer's own `new (std::nothrow)` must not be freed by this delete.
void* operator new(std::size_t size) { return driftd::test::allocate(size); }
void* operator new[](std::size_t size) { return driftd::test::allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return driftd::test::try_allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return driftd::test::try_allocate(size); }
void operator delete(void* at) noexcept { driftd::test::release(at); }
void operator delete[](void* at) noexcept { driftd::test::release(at); }
void operator delete(void* at, std::size_t) noexcept { driftd::test::release(at); }
void operator delete[](void* at, std::size_t) noexcept { driftd::test::release(at); }
void operator delete(void* at, const std::nothrow_t&) noexcept { driftd::test::release(at); }
void operator delete[](void* at, const std::nothrow_t&) noexcept { driftd::test::release(at); }
