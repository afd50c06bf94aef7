// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

std::string applied(const core::Value& answer) {
  std::string out;
  for (const auto& one : list(answer, "applied")) {
    if (one.string() != nullptr) out += (out.empty() ? ": " : ", ") + *one.string();
  }
  return out;
}

/// Warns on stderr, also with JSON output: the reload succeeded, but some changes need a restart.
void warn_of_waiting(const Context& context, const core::Value& answer) {
  const auto waiting = list(answer, "needs_restart");
  if (waiting.empty()) return;
  const std::string count = std::to_string(waiting.size()) + (waiting.size() == 1 ? " setting is" : " settings are");
  context.streams.err << painted("driftd: " + count + " not in use before the agent is restarted:", Colour::yellow,
                                 context.streams.colour)
                      << "\n";
  for (const auto& one : waiting) {
    const std::string where = text(one, "where");
    context.streams.err << "  " << printable(text(one, "setting")) << (where.empty() ? "" : "  " + printable(where))
                        << "\n";
  }
}

}  // namespace

void add_reload(CLI::App& app, Context& context) {
  app.add_subcommand("reload", "read policies, ignores, expectations and routes again, whole or not at all")
      ->callback([&context] {
        const auto answer = context.client().post("/v1/reload", core::Value::Object{});
        context.exit = context.print(
            answer, [&](const auto& whole) { context.out() << "reloaded" << printable(applied(whole)) << "\n"; });
        if (answer) warn_of_waiting(context, *answer);
      });
}

}  // namespace driftd::cli
