// SPDX-License-Identifier: Apache-2.0
#include "base/memory.hpp"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace driftd {

void release_free_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

void limit_heap_growth() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);  // bytes
  ::mallopt(M_TRIM_THRESHOLD, 256 << 10);  // bytes
  ::mallopt(M_ARENA_MAX, 2);
#endif
}

}  // namespace driftd
