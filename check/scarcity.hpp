// SPDX-License-Identifier: Apache-2.0
// Means of the checks that take something away from a plugin: memory or descriptors.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <vector>

#include "check/alloc.hpp"

namespace driftd::check {

/// A function of a host table whose own allocations never fail. `Table` returns the table, `Slot` is the member.
template <auto Table, auto Slot>
struct Sheltered;
template <class T, const T* (*Table)(), class R, class... A, R (*T::*Slot)(A...)>
struct Sheltered<Table, Slot> {
  static R call(A... arguments) {
    const HostAllocates shelter;
    return (Table()->*Slot)(arguments...);
  }
};

/// Returns the numbers of the allocations to fail, from 1 to `last`: all small ones, then ever fewer.
std::vector<std::uint64_t> allocation_numbers(std::uint64_t last);

/// Raises the limit of open files to its maximum, so that a leak shows as growth and not as an open that fails.
void raise_descriptors();

/// Lowers the limit of open files so that `left` descriptors can be opened while this object lives. Throws CheckNotMade
/// if the limit cannot be set.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t left);
  ~FewDescriptors();
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace driftd::check
