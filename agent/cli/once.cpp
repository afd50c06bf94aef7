// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

/// Prints the result. Returns 0 if all is equal, 1 for drift, 3 if it is incomplete.
int report(const Context& context, const core::Value& refreshed, const core::Value::Array& open_drifts) {
  if (context.json()) {
    context.out() << json_text(
                         core::Value::Object{{"refreshed", member(refreshed, "refreshed")}, {"drifts", open_drifts}})
                  << "\n";
  } else {
    print_refreshed(context, refreshed);
    print_drifts(context, open_drifts);
  }
  return open_drifts.empty() ? refresh_exit_code(refreshed) : static_cast<int>(kFinding);
}

/// A running agent holds the store, so it is asked to refresh and to list its drifts.
int ask_agent(const Context& context, const Client& client) {
  const auto refreshed =
      client.post("/v1/refresh", core::Value::Object{{"backend", core::Value("")}, {"full", core::Value(true)}});
  if (!refreshed) return context.fail(refreshed.error());
  core::Value::Array open_drifts;
  for (const char* status : {"pending", "rejected"}) {  // asked separately, because a page full of ignored drifts would
                                                        // hide them
    const auto found = client.get("/v1/drifts", {{"status", status}, {"limit", "10000"}});
    if (!found) return context.fail(found.error());
    for (const auto& drift : list(*found, "drifts")) open_drifts.push_back(drift);
  }
  return report(context, *refreshed, open_drifts);
}

int once(const Context& context, const app::OnceOptions& options) {
  if (options.baseline_file.empty() && options.record_file.empty()) {
    const Client client = context.client();
    if (client.raw("/livez", nullptr, std::chrono::seconds(5))) return ask_agent(context, client);
  }
  if (!context.hooks.once) return context.fail(kUsage, "this binary holds no agent; use driftd");
  const app::OnceResult result = context.hooks.once(context.config, options);
  if (!result.error.empty()) return context.fail(result.exit, result.error);
  return report(context, core::Value::Object{{"refreshed", result.refreshed}}, result.drifts);
}

}  // namespace

void add_once(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("once", "refresh every backend once: exit 0 equal, 1 drift, 3 incomplete");
  auto options = std::make_shared<app::OnceOptions>();
  auto* baseline =
      command->add_option("--baseline", options->baseline_file, "compare with this record; no store is used");
  command->add_option("--record", options->record_file, "write what is read to this file; no store is used")
      ->excludes(baseline);
  command->callback([&context, options] { context.exit = once(context, *options); });
}

}  // namespace driftd::cli
