// SPDX-License-Identifier: Apache-2.0
// How differences and explanations stand on a terminal of 80 columns.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/glance.hpp"

namespace driftd::cli {

/// Prints what differs, indented. Values that are equal as far as they are shown are withheld ones.
void show_glance(const Context& context, const std::vector<GlanceLine>& lines, std::size_t indent = 2);

/// One attribute of an explanation.
struct ExplainedStep {
  std::string path, verdict, reason, rule;
  std::string old_value, new_value;  ///< as JSON; empty if absent
  std::string old_read, new_read;    ///< how they were read
};
void show_step(const Context& context, const ExplainedStep& step);

}  // namespace driftd::cli
