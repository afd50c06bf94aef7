// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.hpp"
#include "cli/schema_file.hpp"

namespace driftd::cli {
namespace {

/// Checks every file; one that is wrong does not hide another.
int check(const Context& context, const std::vector<std::string>& files) {
  int exit = kOk;
  for (const auto& file : files) {
    const auto schema = read_schema(file);
    const Status meaning = schema ? (*schema)->check() : Status();
    if (!schema || !meaning) {
      exit = context.fail(schema ? Failure{kUsage, file + ": " + meaning.error().message} : schema.error());
      continue;
    }
    context.out() << printable(file) << ": kind " << printable((*schema)->kind()) << ", dialect "
                  << (*schema)->dialect() << ", revision " << (*schema)->revision() << ", " << (*schema)->rules().size()
                  << " rules\n";
  }
  return exit;
}

}  // namespace

void add_schema(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("schema", "JSON Schema of the config; with PROVIDER: of its settings or of a kind");
  auto query = std::make_shared<Query>();
  command->add_option("PROVIDER", (*query)["provider"], "a provider that the running agent has");
  command->add_option("WHAT", (*query)["what"], "settings (default) or a kind");
  command->require_subcommand(0, 1);
  auto files = std::make_shared<std::vector<std::string>>();
  auto* check_files = command->add_subcommand("check", "check driftd-schema/1 documents; no agent is asked");
  check_files->add_option("FILE", *files, "files, or names such as kafka/topic")->required();
  check_files->callback([&context, files] { context.exit = check(context, *files); });
  auto* names = command->add_subcommand("list", "the schemas of this package, for `driftd diff --schema NAME`");
  names->callback([&context] {
    for (const auto& name : packaged_schemas()) context.out() << printable(name) << "\n";
  });
  command->callback([&context, query, command] {
    if (!command->get_subcommands().empty()) return;
    if ((*query)["provider"].empty()) {
      context.out() << config::json_schema();
      return;
    }
    if ((*query)["what"].empty()) (*query)["what"] = "settings";
    context.exit = context.print(context.client().get("/v1/schema", *query),
                                 [&](const auto& answer) { context.out() << json_text(answer) << "\n"; });
  });
}

}  // namespace driftd::cli
