// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd {

/// Gives free memory of the heap back to the system: what a long list needed while it was judged. Any thread, best none
/// that others wait for. Without glibc it does nothing.
void give_back_memory();

}  // namespace driftd
