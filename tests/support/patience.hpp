// SPDX-License-Identifier: Apache-2.0
// How long a test waits for what must happen. The one place that knows that a sanitizer makes everything slower.
#pragma once

namespace driftd::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr int kPatience = 10;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr int kPatience = 4;
#else
inline constexpr int kPatience = 1;
#endif
/// A sanitizer's shadow memory counts as the worker's, so its memory budget cannot be tested then.
inline constexpr bool kSanitized = kPatience > 1;

}  // namespace driftd::test
