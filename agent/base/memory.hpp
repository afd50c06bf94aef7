// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd {

/// Gives free memory of the heap back to the system: what a long list needed while it was judged. Any thread, best none
/// that others wait for. Without glibc it does nothing.
void release_free_memory();

/// Before the first thread: a large block goes back to the system when it is freed, and threads share two heaps. glibc
/// otherwise learns from the first large text to keep as much for ever, in each thread's own heap. Without glibc it
/// does nothing.
void limit_heap_growth();

}  // namespace driftd
