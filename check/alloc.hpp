// SPDX-License-Identifier: Apache-2.0
// This program's malloc counts allocations and can fail on purpose. A sanitizer brings its own malloc: then allocations
// are only counted.
#pragma once

#include <cstdint>

namespace driftd::check {

/// Returns true unless a sanitizer has replaced malloc. A sanitizer also holds freed memory back for a while, so that
/// resident memory proves no leak then.
bool owns_malloc();
/// Bytes that the whole process has allocated and not freed.
long live_bytes();

/// While this object lives, the `number`-th allocation of this thread returns NULL. Counts from 1; 0 fails none.
class FailingAllocation {
 public:
  explicit FailingAllocation(std::uint64_t number);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  static std::uint64_t counted();  ///< allocations of this thread during the last FailingAllocation
};

/// While this object lives, allocations of this thread belong to the host: they are neither counted nor failed.
class HostAllocates {
 public:
  HostAllocates();
  ~HostAllocates();
  HostAllocates(const HostAllocates&) = delete;
  HostAllocates& operator=(const HostAllocates&) = delete;

 private:
  bool was_;
};

/// Inside a HostAllocates: while this object lives, allocations of this thread belong to the provider again. Elsewhere
/// it has no effect.
class ProviderAllocates {
 public:
  ProviderAllocates();
  ~ProviderAllocates();
  ProviderAllocates(const ProviderAllocates&) = delete;
  ProviderAllocates& operator=(const ProviderAllocates&) = delete;

 private:
  bool was_;
};

}  // namespace driftd::check
