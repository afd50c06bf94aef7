// SPDX-License-Identifier: Apache-2.0
// malloc of this program, which counts and can be told to fail. A sanitizer has its own: that one only counts.
#pragma once

#include <cstdint>

namespace driftd::check {

/// Not under a sanitizer. Its malloc keeps what was freed for a while, too: resident memory says nothing of leaks then.
bool owns_malloc();
/// Bytes that were handed out and not given back, of the whole process.
long live_bytes();

/// While it lives, the `number`-th allocation of this thread (from 1; 0: none) answers NULL.
class FailingAllocation {
 public:
  explicit FailingAllocation(std::uint64_t number);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  static std::uint64_t counted();  ///< allocations of this thread while the last one lived
};

/// While it lives, allocations of this thread are neither counted nor failed: the host works.
class HostAllocates {
 public:
  HostAllocates();
  ~HostAllocates();
  HostAllocates(const HostAllocates&) = delete;
  HostAllocates& operator=(const HostAllocates&) = delete;

 private:
  bool was_;
};

/// Inside a HostAllocates: while it lives, the provider works again on this thread. Else nothing.
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
