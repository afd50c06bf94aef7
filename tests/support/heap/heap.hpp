// SPDX-License-Identifier: Apache-2.0
// What one call takes from the heap: bounds are tested in bytes, which a busy machine does not change.
#pragma once

#include <cstddef>

namespace driftd::test {

/// Counts what operator new hands out in the whole process, from its construction on. One at a time.
class HeapPeak {
 public:
  HeapPeak();
  ~HeapPeak();
  HeapPeak(const HeapPeak&) = delete;
  HeapPeak& operator=(const HeapPeak&) = delete;

  /// The most bytes that were held at one moment, above those held at the start.
  std::size_t bytes() const;
};

/// Makes operator new throw bad_alloc once `bytes` more are held than now: a machine without memory. One at a time.
class HeapLimit {
 public:
  explicit HeapLimit(std::size_t bytes);
  ~HeapLimit();
  HeapLimit(const HeapLimit&) = delete;
  HeapLimit& operator=(const HeapLimit&) = delete;
};

}  // namespace driftd::test
