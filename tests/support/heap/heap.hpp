// SPDX-License-Identifier: Apache-2.0
// Measures and limits what a call takes from the heap. A bound in bytes holds on a busy machine, too.
#pragma once

#include <cstddef>

namespace driftd::test {

/// Counts what operator new hands out in the whole process, from its construction on. Only one may exist.
class HeapPeak {
 public:
  HeapPeak();
  ~HeapPeak();
  HeapPeak(const HeapPeak&) = delete;
  HeapPeak& operator=(const HeapPeak&) = delete;

  /// Returns the maximum of the bytes held at one moment, without those held at the start.
  std::size_t bytes() const;
};

/// Makes operator new throw bad_alloc if more than `bytes` would be held in addition to those held now. Only one may
/// exist.
class HeapLimit {
 public:
  explicit HeapLimit(std::size_t bytes);
  ~HeapLimit();
  HeapLimit(const HeapLimit&) = delete;
  HeapLimit& operator=(const HeapLimit&) = delete;
};

}  // namespace driftd::test
