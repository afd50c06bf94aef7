// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "base/result.hpp"
#include "config/errors.hpp"

namespace driftd::config {

/// An entry of `agent.programs`: a program that a `${exec:…}` may run.
struct Program {
  std::string path;                            ///< absolute, as written in the file
  std::vector<std::string> environment;        ///< `NAME` (passed on from the agent's environment) or `NAME=value`
  std::chrono::milliseconds timeout{10'000};   ///< time limit of one run
  std::chrono::milliseconds refresh{300'000};  ///< time between two runs, unless the answer has an expiry
  friend bool operator==(const Program&, const Program&) = default;
};

/// A `${exec:…}` in the settings of a backend. The program has not been run.
struct ProgramUse {
  std::string backend, setting;      ///< `orders`, `auth.password`
  std::string token;                 ///< replaces the program's answer in the backend's settings
  std::vector<std::string> command;  ///< the program's path and its arguments
  Program program;
  Position at;
  /// Returns true if both give the same answer, whatever their positions in the file.
  friend bool operator==(const ProgramUse& a, const ProgramUse& b) {
    return a.backend == b.backend && a.token == b.token && a.command == b.command && a.program == b.program;
  }
};

/// Splits a command line into words. Blanks separate words. Single quotes preserve text literally. In double quotes and
/// outside of quotes, a backslash makes the next character literal. Nothing is expanded. Returns an error for shell
/// syntax (`|`, `>` …) and for an unclosed quote.
tl::expected<std::vector<std::string>, std::string> split_command(std::string_view text);

/// Returns ok if the agent may run the file now: it is a regular file, this user may execute it, and it and all folders
/// of its path belong to root or the agent's user (base/trust.hpp). Otherwise returns `not_found`, `denied` or
/// `invalid`, with a message that starts with the path. Accesses the file system. [any thread]
Status check_program(const std::string& path);

class Section;
/// Reads `agent.programs`.
std::vector<Program> read_programs(Section& agent);

}  // namespace driftd::config
