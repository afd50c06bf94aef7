// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <iterator>
#include <memory>
#include <sstream>

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
  const core::Value answer = core::Value::Object{{"file", context.config},
                                                 {"valid", core::Value(errors.empty())},
                                                 {"errors", list(errors)},
                                                 {"warnings", list(warnings)}};
  context.out() << json_text(answer) << "\n";
}

std::string count_of(std::size_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

struct ValidateOptions {
  bool no_secrets = false, run_programs = false, strict = false;
  std::string file;
};

std::string shown_match(const core::Match& match) {
  std::string out;
  const auto add = [&out](const char* name, const std::string& text) {
    out += (out.empty() ? "" : ", ") + std::string(name) + " " + text;
  };
  if (match.kind) add("kind", match.kind->text());
  if (match.id) add("id", match.id->text());
  if (match.path) add("path", match.path->text());
  if (match.cls) add("class", std::string(core::render(*match.cls)));
  return out.empty() ? "everything" : out;
}

/// Lists what driftd may change, because nobody should find that out from the system.
void print_enforced(const Context& context, const config::Config& config) {
  for (const auto& spec : config.backends) {
    const std::string name = printable(spec.name) + (spec.enforce.allowed() ? ": puts back " : ": would put back ");
    for (const auto& rule : spec.rules->policy) {
      if (rule.action != core::Action::enforce) continue;
      context.out() << name << printable(shown_match(rule.match)) << " (" << printable(rule.where) << ")\n";
    }
    for (const auto& [cls, action] : spec.rules->class_policy) {
      if (action == core::Action::enforce) context.out() << name << "class " << core::render(cls) << "\n";
    }
  }
}

int validate(const Context& context, const ValidateOptions& asked) {
  config::LoadOptions options;
  options.resolve_secrets = !asked.no_secrets;
  const auto loaded = config::load(context.config, options);
  std::vector<config::ConfigError> errors = loaded ? std::vector<config::ConfigError>{} : loaded.error();
  std::vector<config::ConfigError> warnings = loaded ? loaded->warnings : std::vector<config::ConfigError>{};
  const auto append = [](std::vector<config::ConfigError> from, std::vector<config::ConfigError>& to) {
    std::move(from.begin(), from.end(), std::back_inserter(to));
  };
  if (loaded && context.hooks.check_config) {
    auto checked = context.hooks.check_config(*loaded);
    append(std::move(checked.errors), errors);
    append(std::move(checked.missing), asked.strict ? errors : warnings);
    append(std::move(checked.left), asked.strict ? errors : warnings);
    append(std::move(checked.notes), warnings);
  }
  if (loaded && asked.run_programs && context.hooks.try_programs) append(context.hooks.try_programs(*loaded), errors);
  if (context.json()) {
    print_json(context, errors, warnings);
    return errors.empty() ? kOk : kConfig;
  }
  const bool colour = context.streams.colour;
  std::istringstream lines(config::render(warnings));
  for (std::string line; std::getline(lines, line);) {
    context.streams.err << painted("warning: ", Colour::yellow, colour) << line << "\n";
  }
  if (!errors.empty()) {
    context.streams.err << config::render(errors);
    context.streams.err << printable(context.config) << ": " << errors.size()
                        << (errors.size() == 1 ? " mistake\n" : " mistakes\n");
    return kConfig;
  }
  context.out() << printable(context.config) << ": " << painted("valid", Colour::green, colour) << ", "
                << count_of(loaded->backends.size(), "backend") << ", " << count_of(loaded->sinks.size(), "sink")
                << ", " << count_of(loaded->routes.size(), "route") << "\n";
  print_enforced(context, *loaded);
  return kOk;
}

}  // namespace

void add_validate(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("validate", "check the configuration and print every mistake with its place");
  auto options = std::make_shared<ValidateOptions>();
  command->add_flag("--no-secrets", options->no_secrets, "do not read what secret references name");
  command->add_flag("--run-programs", options->run_programs,
                    "run the programs of ${exec:…} once and check what they answer");
  command->add_flag("--strict", options->strict,
                    "a plugin that is missing or refused, and a sink or backend that left the file with work undone, "
                    "are mistakes; the agent would start");
  command->add_option("FILE", options->file, "configuration file (default: --config)");
  command->callback([&context, options] {
    if (!options->file.empty()) context.config = options->file;
    context.exit = validate(context, *options);
  });
}

}  // namespace driftd::cli
