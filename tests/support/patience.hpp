// SPDX-License-Identifier: Apache-2.0
// By how much a test multiplies its time limits. This is the only place that knows that a sanitizer makes everything
// slower.
#pragma once

namespace driftd::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr int kPatience = 10;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr int kPatience = 4;
#else
inline constexpr int kPatience = 1;
#endif
/// True under a sanitizer. For example a memory budget cannot be tested then, because shadow memory counts too.
inline constexpr bool kSanitized = kPatience > 1;

}  // namespace driftd::test
