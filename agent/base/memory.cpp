// SPDX-License-Identifier: Apache-2.0
#include "base/memory.hpp"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace driftd {

void give_back_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace driftd
