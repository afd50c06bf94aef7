// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "check/check.hpp"
#include "check/runner.hpp"

namespace driftd::check {

struct Finished {
  Check check;
  Outcome outcome;
};

/// Everything that one run of driftd-check found.
struct Run {
  std::string file;  ///< the provider
  std::uint64_t seed = 0;
  std::vector<std::string> notes;  ///< what limits the run, such as settings that could not be validated
  std::vector<Finished> checks;
};

/// Makes text of a provider safe to print: the result is UTF-8 without terminal control characters and is allowed in
/// XML. Newlines and tabs stay.
std::string safe(std::string_view text);

/// Returns 0 if every `must` holds, 1 if one is broken, 3 if none is broken but one could not be made.
int exit_code(const Run& run);

std::string render_text(const Run& run);   ///< broken checks in full, a table of all checks, one line of totals
std::string render_json(const Run& run);   ///< one object, described in docs/driftd-check.md
std::string render_junit(const Run& run);  ///< a broken `should` becomes a skipped test case with its reason

std::string list_text(const std::vector<Check>& checks);
std::string list_json(const std::vector<Check>& checks);

}  // namespace driftd::check
