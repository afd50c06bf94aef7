// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace driftd::check {

/// What a check's process tells its parent while it can. In memory that both see; any thread.
struct ProgressPage {
  std::atomic<std::int64_t> busy_until_ns{0};  ///< as told to set_busy_until()
  char text[4000] = {};
};

/// What this process is doing with the provider now, in words ("refresh, cancelled at host function 7: emit"): the
/// parent reads it after a crash, an exit or a time-out. Written to `page` once it was shared.
void share_progress(ProgressPage* page);        ///< once, before any thread
void set_progress(std::string_view what);       ///< any thread
void set_progress_note(std::string_view note);  ///< stands behind each set_progress from now on, any thread
std::string progress_text();                    ///< any thread
/// Until then (CLOCK_MONOTONIC) what is in progress has time, by the rules of the ABI; 0: nothing that has. Any thread.
void set_busy_until(std::int64_t ns);

}  // namespace driftd::check
