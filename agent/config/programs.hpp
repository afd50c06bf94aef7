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

/// An entry of `agent.programs`: what a `${exec:…}` may run.
struct Program {
  std::string path;                            ///< absolute, as written
  std::vector<std::string> environment;        ///< `NAME`: passed on from the agent's own; `NAME=value`
  std::chrono::milliseconds timeout{10'000};   ///< of one run
  std::chrono::milliseconds refresh{300'000};  ///< between two runs, unless the answer says when it expires
  friend bool operator==(const Program&, const Program&) = default;
};

/// A `${exec:…}` in the settings of a backend. Nothing was run yet.
struct ProgramUse {
  std::string backend, setting;      ///< `orders`, `auth.password`
  std::string token;                 ///< stands for the answer in the backend's settings
  std::vector<std::string> command;  ///< the program's path and its arguments
  Program program;
  Position at;
  /// The same answer is to be expected, wherever it stands in the file.
  friend bool operator==(const ProgramUse& a, const ProgramUse& b) {
    return a.backend == b.backend && a.token == b.token && a.command == b.command && a.program == b.program;
  }
};

/// Splits a command line by these rules and no others: blanks separate command; '…' is what stands in it; in "…" and
/// outside of quotes a backslash makes the next character a plain one. Nothing is expanded. The fault names what a
/// shell would have understood and nobody does here (`|`, `>` …), and quotes without an end.
tl::expected<std::vector<std::string>, std::string> split_command(std::string_view text);

/// Whether the agent may run a file now: it is there, a regular file, executable by this user, and root's or the
/// agent's own all the way (base/trust.hpp). `not_found`, `denied`, `invalid`; the message starts with the path. Looks
/// at the file system. [any thread]
Status check_program(const std::string& path);

class Section;
/// `agent.programs`.
std::vector<Program> read_programs(Section& agent);

}  // namespace driftd::config
