// SPDX-License-Identifier: Apache-2.0
// `driftd test`: what a sink sends about a notification.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/test_event.hpp"
#include "config/chat.hpp"

namespace driftd::cli {
namespace {

const std::vector<std::string> kFormats = {"slack", "teams", "generic"};

struct TestOptions {
  std::string sink, format, file, kind = "opened";
  std::int64_t event = 0;
  bool send = false, show_template = false;
};

Failure config_failure(const std::vector<config::ConfigError>& errors) { return {kConfig, config::render(errors)}; }

/// Returns a webhook that has only a format, for a template that no sink uses yet.
Outcome<config::SinkSpec> sink_of_format(const std::string& format, const std::string& file) {
  config::Report report{"driftd.yaml", {}, {}, {}, {}};
  sinks::WebhookSettings settings;
  const std::string path = file.empty() ? file : std::filesystem::absolute(file).string();
  settings.chat = config::chat_settings(report, config::chat_format(format), path);
  if (!report.errors.empty()) return tl::unexpected(config_failure(report.errors));
  config::SinkSpec out;
  out.name = format;
  out.type = "webhook";
  out.settings = std::move(settings);
  return out;
}

Outcome<config::SinkSpec> sink_of_config(const Context& context, const TestOptions& options) {
  config::LoadOptions load;
  load.resolve_secrets = options.send;
  auto loaded = config::load(context.config, load);
  if (!loaded) return tl::unexpected(config_failure(loaded.error()));
  std::string known;
  for (auto& spec : loaded->sinks) {
    if (spec.name == options.sink) return std::move(spec);
    known += (known.empty() ? "" : ", ") + spec.name;
  }
  return tl::unexpected(Failure{kUsage, "no sink '" + options.sink + "' in " + context.config +
                                            (known.empty() ? "; it has none" : "; it has " + known)});
}

Outcome<std::vector<config::SinkSpec>> chosen_sinks(const Context& context, const TestOptions& options) {
  std::vector<config::SinkSpec> out;
  if (!options.sink.empty()) {
    auto spec = sink_of_config(context, options);
    if (!spec) return tl::unexpected(spec.error());
    out.push_back(std::move(*spec));
    return out;
  }
  for (const auto& format : kFormats) {
    if (!options.format.empty() && format != options.format) continue;
    auto spec = sink_of_format(format, options.file);
    if (!spec) return tl::unexpected(spec.error());
    out.push_back(std::move(*spec));
  }
  return out;
}

std::string usage_fault(const TestOptions& options) {
  if (!options.sink.empty() && (!options.format.empty() || !options.file.empty())) {
    return "a sink has its own format and template: give either SINK or --format";
  }
  if (!options.file.empty() && options.format.empty()) return "--template needs --format";
  if (options.show_template && options.format.empty()) return "--show-template needs --format";
  if (options.send && options.sink.empty()) return "--send needs the name of a sink";
  return {};
}

/// One body is printed alone, so that another program can read it.
int show(const Context& context, const std::vector<config::SinkSpec>& sinks, const core::StoredEvent& event) {
  for (const auto& spec : sinks) {
    const auto body = context.hooks.render_event(spec, event);
    if (!body) return context.fail(kConfig, "sink '" + spec.name + "': " + body.error().message);
    if (sinks.size() > 1) context.out() << spec.name << ":\n";
    const auto value = core::parse(*body);
    context.out() << (value ? json_text(*value) : *body) << "\n";
  }
  return kOk;
}

int test(const Context& context, const TestOptions& options) {
  if (const std::string fault = usage_fault(options); !fault.empty()) return context.fail(kUsage, fault);
  if (options.show_template) {
    context.out() << config::builtin_chat_template(config::chat_format(options.format));
    return kOk;
  }
  if (!context.hooks.render_event || !context.hooks.send_event) {
    return context.fail(kUsage, "this binary has no sinks");
  }
  const auto sinks = chosen_sinks(context, options);
  if (!sinks) return context.fail(sinks.error());
  core::StoredEvent event = sample_notification(options.kind, SystemClock().wall());
  if (options.event > 0) {
    auto stored = stored_notification(context, options.event);
    if (!stored) return context.fail(stored.error());
    event = std::move(*stored);
  }
  if (const int shown = show(context, *sinks, event); shown != kOk || !options.send) return shown;
  const auto sent = context.hooks.send_event(sinks->front(), event);
  if (!sent) {
    return context.fail(kFinding, "sink '" + options.sink + "' did not take it: " + sent.error().message);
  }
  context.streams.err << "sent: " << printable(*sent) << "\n";
  return kOk;
}

}  // namespace

void add_test(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("test", "show what a sink sends about a notification, and send it");
  auto options = std::make_shared<TestOptions>();
  command->add_option("SINK", options->sink, "of the configuration; without it, every format is shown");
  command->add_option("--format", options->format, "slack, teams or generic")->check(CLI::IsMember(kFormats));
  command->add_option("--template", options->file, "file with a template for --format");
  command->add_option("--kind", options->kind, "of the sample: opened, changed, reminder, escalation, ended, summary")
      ->check(CLI::IsMember({"opened", "changed", "reminder", "escalation", "ended", "summary"}));
  command->add_option("--event", options->event, "number of a stored notification instead of a sample")
      ->check(CLI::PositiveNumber);
  command->add_flag("--send", options->send, "really send it, by the sink itself");
  command->add_flag("--show-template", options->show_template, "print the built-in template of --format");
  command->callback([&context, options] { context.exit = test(context, *options); });
}

}  // namespace driftd::cli
