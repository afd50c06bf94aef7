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
  std::string text;          ///< the reason; if it passed, what the work returned
  std::string child_stderr;  ///< the last bytes that the child wrote to stderr; not checked or escaped
  std::chrono::milliseconds took{0};
  bool differs = false;  ///< it is broken because of ListingDiffers
};

/// Runs `work` in a child process with a process group of its own and /dev/null as stdin and stdout. What `work`
/// returns becomes the outcome's text. A crash, an exit, or exceeding `limit` of wall time (scaled up under a
/// sanitizer) is `broken`, with the reason as text. Kills whatever the child left running in its group. The caller must
/// have one thread only.
Outcome run_in_child(std::chrono::milliseconds limit, const std::function<std::string()>& work);

/// Runs one check. ListingDiffers becomes `not_made` if another child finds that the system changes by itself.
Outcome run_check(const Check& check, const Subject& subject);

}  // namespace driftd::check
