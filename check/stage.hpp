// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace driftd::check {

/// What this process is doing with the provider now, in words ("refresh, cancelled at host function 7: emit"): the
/// parent reads it after a crash, an exit or a time-out. Written to `page` once it was shared.
void share_stage(char* page, std::size_t size);  ///< memory that the parent sees too; once, before any thread
void stage(std::string_view what);               ///< any thread
void stage_note(std::string_view note);          ///< stands behind each stage from now on, any thread
std::string current_stage();                     ///< any thread

}  // namespace driftd::check
