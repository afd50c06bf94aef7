// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd {

/// Returns free heap memory to the system, for instance after a long list was judged. It takes some milliseconds, so
/// call it on a thread that nobody waits for. Does nothing without glibc.
void release_free_memory();

/// Call before the first thread starts. Large blocks then go back to the system when they are freed, and threads share
/// two heaps. By default glibc raises its limit with the first large block and keeps as much for ever, in each thread's
/// own heap. Does nothing without glibc.
void limit_heap_growth();

}  // namespace driftd
