// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "base/escape.hpp"
#include "cli/command.hpp"
#include "core/ports/links.hpp"

namespace driftd::cli {
namespace {

/// Returns the user that the kernel reported, with the claimed user in brackets. The actor of a link has the name that
/// somebody typed on its page already.
std::string who(const core::Value& line) {
  const std::string actor = text(line, "actor"), claimed = text(line, "claimed");
  const bool typed = claimed.starts_with(core::kTyped);
  if (typed && actor.ends_with("(typed: " + claimed.substr(core::kTyped.size()) + ")")) return actor;
  return actor + (claimed.empty() ? "" : " (claims " + claimed + ")");
}

/// Returns `path old → new` of each change.
std::string what(const core::Value& line) {
  std::string out;
  for (const auto& change : list(line, "changes")) {
    const Sides sides = shorten(read_sides(change));
    out += (out.empty() ? "" : ", ") + text(change, "path") + " " + sides.before + " → " + sides.now;
  }
  return out.size() > 200 ? std::string(front(out, 197)) + "..." : out;
}

void show_lines(const Context& context, const core::Value& answer) {
  Table table({"AT", "WHO", "DID", "BACKEND", "RESOURCE", "TO", "VALUES", "REASON", "REFUSED"});
  for (const auto& line : list(answer, "audit")) {
    const std::string digest = text(line, "digest");
    const std::string subject = text(line, "subject") + (digest.empty() ? "" : "@" + digest.substr(0, 12));
    table.add({when(text(line, "at")),
               who(line),
               text(line, "verb"),
               text(line, "backend"),
               text(line, "resource"),
               subject,
               what(line),
               text(line, "reason"),
               {text(line, "outcome"), Colour::red}});
  }
  context.print(table, "the audit log has no lines yet");
  print_omitted(context, answer, list(answer, "audit").size());
}

}  // namespace

void add_audit(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("audit", "who did what, when and why, and who was refused");
  auto query = std::make_shared<Query>();
  auto check = std::make_shared<bool>(false);
  command->add_option("--limit", (*query)["limit"], "maximum number of rows (default 100)");
  command->add_flag("--verify", *check, "check that no line was changed or removed; exit 1 when one was");
  command->require_subcommand(0, 1);
  add_audit_verify(*command, context);
  add_audit_export(*command, context);
  command->callback([&context, query, check, command] {
    if (!command->get_subcommands().empty()) return;
    if (*check) {
      context.exit = verify_audit(context, {}, {});
      return;
    }
    context.exit = context.print(context.client().get("/v1/audit", *query),
                                 [&](const auto& answer) { show_lines(context, answer); });
  });
}

}  // namespace driftd::cli
