// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace driftd::check {

/// What a check's process reports to its parent, in memory that both share. [any thread]
struct ProgressPage {
  std::atomic<std::int64_t> busy_until_ns{0};  ///< the last value of set_busy_until()
  char text[4000] = {};
};

// The progress text says what this process is doing with the provider now, such as "refresh, cancelled at host function
// 7: emit". After a crash, an exit or a time-out the parent reads it from the shared page.

/// Uses `page` for the progress text from now on. Call it once, before any thread is started.
void share_progress(ProgressPage* page);
void set_progress(std::string_view what);       ///< any thread
void set_progress_note(std::string_view note);  ///< is appended to each progress text from now on, any thread
std::string progress_text();                    ///< any thread
/// The call in progress has time until `ns` (CLOCK_MONOTONIC) by the rules of the ABI; 0: no such call is in progress.
/// [any thread]
void set_busy_until(std::int64_t ns);

}  // namespace driftd::check
