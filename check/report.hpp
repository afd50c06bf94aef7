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

/// All that one run of driftd-check found.
struct Run {
  std::string file;  ///< the provider
  std::uint64_t seed = 0;
  std::vector<std::string> notes;  ///< what limits the run: settings that could not be validated
  std::vector<Finished> checks;
};

/// What a provider says may hold anything: UTF-8 comes out that moves no cursor and may stand in XML; newline and tab
/// stay.
std::string safe(std::string_view text);

/// 0: every `must` holds; 1: one is broken; 3: none is broken, but one could not be made.
int exit_code(const Run& run);

std::string render_text(const Run& run);   ///< what broke in full, the table, one line of sums
std::string render_json(const Run& run);   ///< one object, docs/driftd-check.md
std::string render_junit(const Run& run);  ///< a broken `should` is a skipped test case with its reason

std::string list_text(const std::vector<Check>& checks);
std::string list_json(const std::vector<Check>& checks);

}  // namespace driftd::check
