// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <iterator>
#include <memory>

#include "cli/command.hpp"

namespace driftd::cli {
namespace {

void print_json(const Context& context, const std::vector<config::ConfigError>& errors,
                const std::vector<config::ConfigError>& warnings) {
  const auto list = [](const std::vector<config::ConfigError>& all) {
    core::Value::Array out;
    for (const auto& one : all) {
      out.push_back(core::Value::Object{{"line", core::Value::Number{std::to_string(one.at.line)}},
                                        {"column", core::Value::Number{std::to_string(one.at.column)}},
                                        {"message", config::render(one)}});
    }
    return out;
  };
  const core::Value answer = core::Value::Object{
      {"file", context.config}, {"valid", core::Value(errors.empty())}, {"errors", list(errors)}, {"warnings", list(warnings)}};
  context.out() << core::render(answer) << "\n";
}

std::string count_of(std::size_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

int validate(const Context& context, bool resolve, bool run_programs) {
  config::LoadOptions options;
  options.resolve_secrets = resolve;
  const auto loaded = config::load(context.config, options);
  std::vector<config::ConfigError> errors = loaded ? std::vector<config::ConfigError>{} : loaded.error();
  const std::vector<config::ConfigError> warnings = loaded ? loaded->warnings : std::vector<config::ConfigError>{};
  if (loaded && context.hooks.check_settings) errors = context.hooks.check_settings(*loaded);
  if (loaded && run_programs && context.hooks.try_programs) {
    auto failed = context.hooks.try_programs(*loaded);
    std::move(failed.begin(), failed.end(), std::back_inserter(errors));
  }
  if (context.json()) {
    print_json(context, errors, warnings);
    return errors.empty() ? kOk : kConfig;
  }
  const bool colour = context.streams.colour;
  if (!warnings.empty()) context.streams.err << painted("warning: ", Colour::yellow, colour) << config::render(warnings);
  if (!errors.empty()) {
    context.streams.err << config::render(errors);
    context.streams.err << context.config << ": " << errors.size() << (errors.size() == 1 ? " mistake\n" : " mistakes\n");
    return kConfig;
  }
  context.out() << context.config << ": " << painted("valid", Colour::green, colour) << ", " << count_of(loaded->backends.size(), "backend") << ", " << count_of(loaded->sinks.size(), "sink") << ", "
                << count_of(loaded->routes.size(), "route") << "\n";
  return kOk;
}

}  // namespace

void add_validate(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("validate", "check the configuration and print every mistake with its place");
  auto skip = std::make_shared<bool>(false);
  command->add_flag("--no-secrets", *skip, "do not read what secret references name");
  auto programs = std::make_shared<bool>(false);
  command->add_flag("--run-programs", *programs, "run the programs of ${exec:…} once and check what they answer");
  auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, "configuration file (default: --config)");
  command->callback([&context, skip, programs, file] {
    if (!file->empty()) context.config = *file;
    context.exit = validate(context, !*skip, *programs);
  });
}

}  // namespace driftd::cli
