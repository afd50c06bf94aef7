// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "check/check.hpp"

namespace driftd::check {

enum class Ending { passed, broken, not_made, not_applicable };
const char* render(Ending ending);  ///< `passed`, `broken`, `not made`, `not applicable`

/// How one check ended.
struct Outcome {
  Ending ending = Ending::passed;
  std::string text;          ///< the reason; of one that passed what the work returned
  std::string child_stderr;  ///< the last bytes that the child wrote to stderr; may hold anything
  std::chrono::milliseconds took{0};
  bool differs = false;  ///< broken by ListingDiffers
};

/// Runs `work` in a child process of its own group with /dev/null as stdin and stdout; what it returns is the text. A
/// crash, an exit and the limit of wall time (longer under a sanitizer) are `broken`, with the reason in words; what
/// the child left running in its group is killed. The caller has one thread.
Outcome run_in_child(std::chrono::milliseconds limit, const std::function<std::string()>& work);

/// ListingDiffers is `not_made` when a process that nobody disturbs finds that the system changes by itself.
Outcome run_check(const Check& check, const Subject& subject);

}  // namespace driftd::check
