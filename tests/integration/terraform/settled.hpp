// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "support/process.hpp"
#include "support/provider_probe.hpp"

namespace driftd::test {

/// Refreshes until the next refresh says "unchanged", and returns the last one that listed. A file that was written
/// within the last tick of the clock is read once more, for it could still change within that tick.
inline Collected settled(ProviderProbe& probe) {
  Collected out = probe.refresh();
  EXPECT_TRUE(eventually([&] {
    Collected next = probe.refresh(out.cursor);
    const bool same = next.unchanged;
    if (!same) out = std::move(next);
    return same;
  }));
  return out;
}

}  // namespace driftd::test
