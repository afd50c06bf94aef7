// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"
#include "cli/show.hpp"

namespace driftd::cli {
namespace {

/// `whole` prints equal attributes as well.
void show_explanation(const Context& context, const core::Value& answer, bool whole) {
  std::size_t equal = 0, shown = 0;
  for (const auto& step : list(answer, "steps")) {
    const std::string verdict = text(step, "verdict");
    if (verdict == "equal" && !whole) {
      ++equal;
      continue;
    }
    ++shown;
    const auto side = [&](std::string_view name) {
      const core::Value found = member(step, name);
      return found.is_null() ? std::string() : core::render(found);
    };
    show_step(context, {text(step, "path"), verdict, text(step, "reason"), text(step, "rule"), side("old"), side("new"),
                        text(step, "old_normal"), text(step, "new_normal")});
  }
  if (shown == 0) context.out() << (equal == 0 ? "no attributes" : "nothing differs") << "\n";
  for (const auto& held : list(answer, "held")) {
    context.out() << "drift " << printable(text(held, "drift")) << " is not put back ("
                  << printable(text(held, "reason")) << "): " << printable(text(held, "text")) << "\n";
  }
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
