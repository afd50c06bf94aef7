// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {

namespace {

constexpr std::array kUnread = {Code::denied, Code::unsupported};

/// Returns true if something of a kind was left out although its list is whole, because a right is missing or the
/// system does not have it. A line `declared:<backend>/<kind>` does not count: this agent denies a source some
/// declarations, and a tenant who makes such a declaration must not make every refresh fail.
bool lacks_something(const core::Value& kind) {
  if (text(kind, "kind").starts_with("declared:")) return false;
  const auto reasons = list(kind, "reasons");
  return std::any_of(reasons.begin(), reasons.end(), [](const core::Value& reason) {
    const std::string* found = reason.string();
    return found != nullptr && std::any_of(kUnread.begin(), kUnread.end(), [&](Code code) {
             return found->starts_with(std::string(render(code)) + ":");
           });
  });
}

}  // namespace

int refresh_exit_code(const core::Value& answer) {
  for (const auto& one : list(answer, "refreshed")) {
    if (!flag(one, "ok")) return kIncomplete;
    for (const auto& kind : list(one, "coverage")) {
      if (!flag(kind, "complete") || number(kind, "unknown") > 0 || lacks_something(kind)) return kIncomplete;
    }
  }
  return kOk;
}

int print_refreshed(const Context& context, const core::Value& answer) {
  Table table({"BACKEND", "OK", "KIND", "RESOURCES", "UNKNOWN", "NOTE"});
  for (const auto& one : list(answer, "refreshed")) {
    const bool ok = flag(one, "ok");
    const Cell verdict(ok ? "yes" : "no", ok ? Colour::green : Colour::red);
    const auto coverage = list(one, "coverage");
    for (const auto& kind : coverage) {
      table.add({text(one, "backend"), verdict, text(kind, "kind"), text(kind, "resources"), text(kind, "unknown"),
                 join(list(kind, "reasons"))});
    }
    if (!ok || coverage.empty())
      table.add({text(one, "backend"), verdict, "", "", "", text(member(one, "error"), "message")});
  }
  context.print(table, "no backends");
  return refresh_exit_code(answer);
}

void add_refresh(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("refresh", "refresh now and wait for the result; exit 3 if not everything could be compared");
  auto backend = std::make_shared<std::string>();
  auto full = std::make_shared<bool>(false);
  command->add_option("BACKEND", *backend, "only this backend");
  command->add_flag("--full", *full, "list everything, whatever cursors say");
  command->callback([&context, backend, full] {
    const auto answer = context.client().post(
        "/v1/refresh", core::Value::Object{{"backend", core::Value(*backend)}, {"full", core::Value(*full)}});
    context.exit = context.print(answer, [&](const auto& value) { print_refreshed(context, value); });
    if (answer) context.exit = refresh_exit_code(*answer);
  });
}

}  // namespace driftd::cli
