// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

/// `whole` prints equal attributes as well.
void show_explanation(const Context& context, const core::Value& answer, bool whole) {
  std::size_t equal = 0;
  Table table({"PATH", "VERDICT", "OLD", "NEW", "READ AS", "RULE", "REASON"});
  for (const auto& step : list(answer, "steps")) {
    const std::string verdict = text(step, "verdict");
    if (verdict == "equal" && !whole) {
      ++equal;
      continue;
    }
    const auto side = [&](std::string_view name) {
      const core::Value found = member(step, name);
      return found.is_null() ? std::string("(absent)") : core::render(found);
    };
    table.add({text(step, "path"),
               {verdict, colour_of(verdict)},
               side("old"),
               side("new"),
               side("old_normal") + " | " + side("new_normal"),
               text(step, "rule"),
               text(step, "reason")});
  }
  context.print(table, equal == 0 ? "no attributes" : "nothing differs");
  if (equal > 0) context.out() << equal << " equal attributes; --all shows them\n";
}

}  // namespace

void add_explain(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("explain", "why an attribute is, or is not, a drift");
  struct Options {
    std::string backend, resource, path;
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  command->add_option("BACKEND", options->backend)->required();
  command->add_option("KIND/ID", options->resource, "the resource, such as role/app")->required();
  command->add_option("PATH", options->path, "only this attribute");
  command->add_flag("--all", options->all, "equal attributes too");
  command->callback([&context, options] {
    const auto answer =
        context.client().post("/v1/explain", core::Value::Object{{"backend", core::Value(options->backend)},
                                                                 {"resource", core::Value(options->resource)},
                                                                 {"path", core::Value(options->path)}});
    const bool whole = options->all || !options->path.empty();
    context.exit = context.print(answer, [&](const auto& value) { show_explanation(context, value, whole); });
  });
}

}  // namespace driftd::cli
