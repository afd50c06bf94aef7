// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cli/cli.hpp"

namespace driftd::cli {

struct CommandResult {
  int code = -1;
  std::string out, err;
};

/// Runs one command line in this process.
inline CommandResult driftd(std::vector<std::string> arguments, const Hooks& hooks = {}, bool colour = false,
                            std::istream* answers = nullptr) {
  std::ostringstream out, err;
  const int code = run(std::move(arguments), {out, err, colour, answers}, hooks);
  return {code, out.str(), err.str()};
}

}  // namespace driftd::cli
